package mock

import (
	"os"
	"strings"
	"testing"
)

// docs/mock.md documents every field of a script, every kind of fault and every break, and
// its first example is a valid script.
func TestDocsHaveEveryField(t *testing.T) {
	raw, err := os.ReadFile("../../docs/mock.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	var names []string
	for _, part := range scriptTypes {
		if fields := fieldsOf(part.Name()); len(fields) == 0 {
			t.Errorf("%s has no fields", part)
		} else {
			names = append(names, fields...)
		}
	}
	names = append(names, Kinds()...)
	for name := range breaks {
		names = append(names, name)
	}
	for _, name := range names {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/mock.md does not document %s", name)
		}
	}
	_, rest, _ := strings.Cut(page, "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	if s, err := Parse([]byte(example)); err != nil || len(s.Sessions) != 1 || len(s.Sessions[0].Turns) < 2 {
		t.Errorf("the example: %v", err)
	}
}
