package sources

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The error about a broken file names the place, and no part of the file is used.
func TestBrokenFilesAreExplained(t *testing.T) {
	line, err := json.Marshal(sweRow(strings.Repeat("a", 40)))
	if err != nil {
		t.Fatal(err)
	}
	good := string(line)
	latin := strings.Replace(good, "double triples", "na\xefve", 1)
	for _, c := range []struct{ name, text, want string }{
		{"rows.jsonl", good + "\n" + good[:len(good)/2], "rows.jsonl:2: want a JSON object per line: unexpected end"},
		{"rows.jsonl", good + "\n" + latin, "rows.jsonl:2: want a JSON object per line: not UTF-8"},
		{"rows.json", "[" + good + "," + latin + "]", "rows.json: row 2: want a list of objects: not UTF-8"},
		{"rows.json", "[" + good + ",7]", "rows.json: row 2: want a list of objects: json: cannot unmarshal number"},
		{"rows.json", "[" + good, "rows.json: want a list of objects: unexpected EOF"},
	} {
		file := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := tasksOf(t, "swebench", map[string]any{"path": file}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
