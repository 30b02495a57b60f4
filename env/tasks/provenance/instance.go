package provenance

import (
	"regexp"
	"slices"
	"strings"
)

// Tests of contamination by names, from the strongest to the weakest.
const (
	TestInstance = "instance" // the id is, or has the form of, one of the benchmark's
	TestRepo     = "repo"     // the benchmark takes tasks from the repository
)

// sources maps task sources to the benchmarks whose tasks they have.
var sources = map[string]string{
	"swebench": "swe-bench", "swebench-debug": "swe-bench", "mini_nightmare": "mini-nightmare", "aider": "aider-polyglot", "r2egym": "r2e-gym", "swesmith": "swe-smith", "sweqa": "swe-qa",
}

// trained are benchmarks for training: their own tasks are not contamination, but the repositories
// of other benchmarks among them are.
var trained = map[string]bool{"r2e-gym": true, "swe-smith": true}

// request matches the ids of tasks made of merged pull requests.
var request = regexp.MustCompile(`^[A-Za-z0-9_.-]+__[A-Za-z0-9_.-]+-[0-9]+$`)

// Contamination lists the public benchmarks that a task belongs to, as
// BENCHMARK:TEST, sorted. It is empty if there is none, and nil if the repository is unknown.
// source is the kind of task source.
func Contamination(source, instance, repo string, known bool) []string {
	var out []string
	own := sources[source]
	if own != "" && !trained[own] {
		out = append(out, own+":"+TestInstance)
	}
	name := repo
	if request.MatchString(instance) {
		if list := Benchmark(instance); list != "" {
			out = append(out, list+":"+TestInstance)
		}
		if !known {
			name, known = instance, true
		}
	}
	if list := Benchmark(name); known && list != "" {
		out = append(out, list+":"+TestRepo)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if len(out) == 0 && known {
		return []string{}
	}
	return out
}

// LicenseFile reports whether the name of a file at the root of a repository is that of a license.
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

// Declared is the SPDX id of the license in a package's metadata (pyproject.toml, setup.cfg,
// setup.py), "" if there is none or it is unknown. "BSD" by itself is ambiguous, so it counts as
// unknown.
func Declared(text string) string {
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
