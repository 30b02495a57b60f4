package provenance

import (
	"regexp"
	"slices"
	"strings"
)

// Tests of contamination by names.
const (
	TestInstance = "instance" // the id belongs to the benchmark, or has the form of its ids
	TestRepo     = "repo"     // the benchmark takes tasks from the repository
)

// benchmarkOfSource maps task sources to the benchmarks that they read.
var benchmarkOfSource = map[string]string{
	"swebench": "swe-bench", "swebench-debug": "swe-bench", "mini_nightmare": "mini-nightmare", "aider": "aider-polyglot", "r2egym": "r2e-gym", "swesmith": "swe-smith", "sweqa": "swe-qa",
}

// isForTraining lists the benchmarks for training. Their own tasks are not contamination, unless they use repositories
// of other benchmarks.
var isForTraining = map[string]bool{"r2e-gym": true, "swe-smith": true}

// request matches the ids of tasks made of merged pull requests.
var request = regexp.MustCompile(`^[A-Za-z0-9_.-]+__[A-Za-z0-9_.-]+-[0-9]+$`)

// Contamination returns the public benchmarks to which a task belongs, as sorted strings of the form BENCHMARK:TEST.
// source is the kind of task source; known says whether repo is known. The result is nil if nothing was found and the
// repository is unknown, and empty but not nil if it is known.
func Contamination(source, instance, repo string, known bool) []string {
	var out []string
	if name := benchmarkOfSource[source]; name != "" && !isForTraining[name] {
		out = append(out, name+":"+TestInstance)
	}
	name := repo
	if request.MatchString(instance) {
		if benchmark := Benchmark(instance); benchmark != "" {
			out = append(out, benchmark+":"+TestInstance)
		}
		if !known {
			name, known = instance, true
		}
	}
	if benchmark := Benchmark(name); known && benchmark != "" {
		out = append(out, benchmark+":"+TestRepo)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if len(out) == 0 && known {
		return []string{}
	}
	return out
}

// LicenseFile reports whether a path in a repository is that of a license file at the root.
func LicenseFile(name string) bool {
	if strings.Contains(name, "/") {
		return false
	}
	base, _, _ := strings.Cut(strings.ToUpper(name), ".")
	switch base {
	case "LICENSE", "LICENCE", "COPYING", "UNLICENSE", "LICENSE-MIT", "LICENSE-APACHE":
		return true
	}
	return false
}

var (
	declared    = regexp.MustCompile(`(?mi)^\s*license\s*=\s*(?:\{\s*text\s*=\s*)?["']([^"']+)["']`)
	classifiers = regexp.MustCompile(`(?i)License :: OSI Approved :: ([^"'\n,]+)`)
)

// licenseNames maps common names of licenses to SPDX ids.
var licenseNames = map[string]string{
	"mit": "MIT", "mit license": "MIT", "mit licence": "MIT", "expat": "MIT", "apache-2.0": "Apache-2.0", "apache 2.0": "Apache-2.0",
	"apache license 2.0": "Apache-2.0", "apache license, version 2.0": "Apache-2.0", "apache software license": "Apache-2.0",
	"bsd-3-clause": "BSD-3-Clause", "bsd 3-clause": "BSD-3-Clause", "bsd-2-clause": "BSD-2-Clause", "isc": "ISC",
	"isc license (iscl)": "ISC", "isc license": "ISC", "mpl-2.0": "MPL-2.0", "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
	"gpl-3.0": "GPL-3.0", "gplv3": "GPL-3.0", "gnu general public license v3 (gplv3)": "GPL-3.0", "lgpl-3.0": "LGPL-3.0",
	"unlicense": "Unlicense", "the unlicense (unlicense)": "Unlicense", "psf-2.0": "PSF-2.0", "python software foundation license": "PSF-2.0",
}

// DeclaredLicense returns the SPDX id of the license that a package's metadata (pyproject.toml, setup.cfg, setup.py)
// declares, or "" if there is none or it is unknown. "BSD" alone is ambiguous, so it counts as unknown.
func DeclaredLicense(text string) string {
	for _, form := range []*regexp.Regexp{declared, classifiers} {
		for _, m := range form.FindAllStringSubmatch(text, -1) {
			if id := licenseNames[strings.ToLower(strings.TrimSpace(m[1]))]; id != "" {
				return id
			}
		}
	}
	return ""
}

// MetadataFiles are the files that may declare a license, in order of preference.
var MetadataFiles = []string{"pyproject.toml", "setup.cfg", "setup.py"}
