// Package provenance says where repositories and tasks come from: the canonical name of a
// repository (canonical.go, hosted.go, upstream.go), the benchmarks that take their tasks
// from it (benchmarks.go, instance.go), the split that it falls into (split.go), and the
// hashes by which copies of benchmarks are found (prints.go, taskprints.go, library.go,
// known.go, compare.go). The lists are the data files beside this one.
package provenance
