package guest

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMaterialise(t *testing.T) {
	name := filepath.Join(t.TempDir(), "cache", "guest")
	for _, content := range []string{"one", "another"} {
		if err := materialise(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(name)
		fi, statErr := os.Stat(name)
		if err != nil || statErr != nil || string(raw) != content || fi.Mode().Perm() != 0o755 {
			t.Errorf("%q, %v, %v, %v", raw, fi.Mode(), err, statErr)
		}
	}
	left, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
