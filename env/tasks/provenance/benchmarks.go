package provenance

import _ "embed"

// ListVersion is the version of the data files.
const ListVersion = 1

//go:embed benchmarks.txt
var benchmarksText string

var benchmarks = pairs(benchmarksText)

// Benchmark names the public benchmark that takes tasks from a repository, "" if there is
// none. The name need not be canonical.
func Benchmark(repo string) string { return benchmarks[Canonical(repo)] }

// Listed returns the number of repositories of each benchmark.
func Listed() map[string]int {
	out := map[string]int{}
	for _, name := range benchmarks {
		out[name]++
	}
	return out
}
