package baseline

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A skipped test and a test that catches an exception do not count as failing.
func TestRankingWithUnittest(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"prog.py": `def good(x):
    return x

def bad(x):
    if x > 1:
        return x - 1
    return x

def refuse():
    raise ValueError("no")
`,
		"src/test_prog.py": `import unittest
import prog

class ProgTest(unittest.TestCase):
    def test_fails(self):
        self.assertEqual(prog.bad(prog.good(2)), 2)
    def test_passes(self):
        self.assertEqual(prog.bad(prog.good(1)), 1)
    def test_skipped(self):
        prog.good(1)
        self.skipTest("later")
    def test_refuses(self):
        with self.assertRaises(ValueError):
            prog.refuse()
`,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", rankingCommand("PYTHONPATH=. python3 -m unittest discover src"))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if want := "1.000 prog.py:6\n0.577 prog.py:2\n"; err != nil || string(out) != want {
		t.Errorf("%v, ranking %q, want %q", err, out, want)
	}
}
