// Package metrics computes the columns that describe the behavior in an episode: the
// kind of every action, new information, repeats, the twelve trajectory criteria,
// leaks, reward hacks, the loss mask, and the comparison with the gold patch. All of
// them depend only on rows and patches. None of them decides the outcome of an episode.
package metrics
