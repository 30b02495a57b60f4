package builtin

import (
	"fmt"
	"strings"
)

// numbered returns n lines of text.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

// project is a workspace with unusual files.
var project = files{
	"a.py":              "import os\n\ndef f(x):\n    return x\n",
	"crlf.py":           "a = 1\r\nb = 2\r\n",
	"empty.py":          "",
	"open.py":           "no newline at the end",
	"bin.dat":           "\x00\x01\x02",
	"latin.py":          "# caf\xe9 total\n",
	"long.py":           numbered(12_000),
	"wide.txt":          strings.Repeat("w", 5000) + "\n",
	"cr.txt":            "one\rtwo\n",
	"mixed.txt":         "a\r\nb\nc\r\n",
	"src/pkg/mod.py":    "def total(items):\n    # sum of items\n    return sum(items)\n",
	"src/pkg/other.txt": "total: -1\n-rf total\n",
	"src/odd:na me.py":  "total = 2\n",
	"src/-dash.py":      "total = 3\n",
	"run.sh":            "#!/bin/sh\n",
	"link.py":           "-> src/pkg/mod.py",
	"dirlink":           "-> src/pkg",
	"out":               "-> /etc/passwd",
	"outdir":            "-> /etc",
	"broken":            "-> nowhere",
	".git/config":       "total\n",
	"__pycache__/x.pyc": "total\n",
	"a    b/c.txt":      "spaces\n",
}
