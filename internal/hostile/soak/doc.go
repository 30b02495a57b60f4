// Package soak runs a great number of tool calls, ordinary ones with known exact
// answers and a share of hostile ones, over several environments at once, and
// counts what was not as it must be.
//
// It imports env, env/hostile and schemas.
package soak
