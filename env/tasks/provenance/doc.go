// Package provenance says where repositories and tasks come from: the canonical name of a repository (canonical.go,
// hosted.go, upstream.go), the benchmarks that take tasks from it (benchmarks.go, instance.go), its split (split.go),
// its license (instance.go, license.go), and the hashes that identify copies of benchmarks (repohashes.go,
// taskhashes.go, library.go, known.go, compare.go, groups.go). The lists of benchmarks and of moved repositories are
// the text files in this directory.
package provenance
