package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// readFile returns the text of a file.
func readFile(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// CITATION.cff has the version of the file VERSION.
func TestCitationNamesTheRelease(t *testing.T) {
	fields := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+): *"?([^"\n]*)"?$`).FindAllStringSubmatch(readFile(t, "CITATION.cff"), -1) {
		fields[m[1]] = m[2]
	}
	for field, want := range map[string]string{
		"cff-version": "1.2.0", "title": "tracesmith", "type": "software", "license": "MIT",
		"repository-code": "https://github.com/tracesmith/tracesmith", "version": strings.TrimSpace(readFile(t, "VERSION")),
	} {
		if fields[field] != want {
			t.Errorf("CITATION.cff: %s is %q, want %q", field, fields[field], want)
		}
	}
}

// make install copies the program that make build made. It builds nothing, because it often runs as
// root.
func TestInstall(t *testing.T) {
	makefile, err := filepath.Abs("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	tree, dest := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(tree, "VERSION"), []byte("0.0.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	install := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), "make", "-f", makefile, "install", "DESTDIR="+dest, "PREFIX=/opt/it is")
		cmd.Dir = tree
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := install(); err == nil || !strings.Contains(out, "run make build first") {
		t.Errorf("without a program: %v, %s", err, out)
	}
	if err := os.Mkdir(filepath.Join(tree, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "bin/tracesmith"), []byte("program"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := install(); err != nil {
		t.Fatalf("%v, %s", err, out)
	}
	installed := filepath.Join(dest, "opt/it is/bin/tracesmith")
	if got := readFile(t, installed); got != "program" {
		t.Errorf("installed %q", got)
	}
	if fi, err := os.Stat(installed); err != nil || fi.Mode() != 0o755 {
		t.Errorf("installed with %v, %v", fi.Mode(), err)
	}
}
