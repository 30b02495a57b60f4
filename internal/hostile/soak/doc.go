// Package soak runs many tool calls in several environments concurrently: ordinary calls
// with known answers and a share of hostile ones. It counts every wrong result.
package soak
