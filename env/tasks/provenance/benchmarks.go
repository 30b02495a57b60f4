package provenance

import _ "embed"

// ListVersion is the version of the data files.
const ListVersion = 1

//go:embed benchmarks.txt
var benchmarksText string

var benchmarks = parsePairs(benchmarksText)

// Benchmark returns the name of the public benchmark that takes tasks from a repository, or "" if there is none. repo
// does not need to be a canonical name.
func Benchmark(repo string) string { return benchmarks[Canonical(repo)] }

// BenchmarkSizes returns the number of repositories of each benchmark.
func BenchmarkSizes() map[string]int {
	out := map[string]int{}
	for _, name := range benchmarks {
		out[name]++
	}
	return out
}
