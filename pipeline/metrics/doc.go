// Package metrics computes columns about an episode's behavior: the kind of every
// action, new information, repeats, the twelve trajectory criteria, leaks, reward
// hacks, the loss mask, and the comparison with the gold patch. Everything is a pure
// function of rows and patches; nothing here decides an outcome.
package metrics
