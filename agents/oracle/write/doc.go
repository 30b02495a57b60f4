// Package write is the blind half of the oracle. From what the steps of an episode have shown, it
// derives the actions that a developer could take next, and it writes all calls and texts. It
// knows neither the fix nor the paired trace. Package choose, which knows both, only picks one of
// the actions.
package write
