package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/cmd/internal/settings"
	"github.com/tracesmith/tracesmith/sinks"
)

// viewPage returns the page about views: the fields of their rows and the options that they
// take.
func viewPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# Views\n\nThe views of `tracesmith export`. [Exporting views](../views.md) explains the options and how trainers load the rows. " +
		"Of the values of an option, the first is the default. A view refuses an option that is not in its table.\n")
	for _, c := range settings.Views() {
		kind := c.Kind
		view, err := sinks.Views.Build(kind, nil, sinks.ViewOptions{Count: func(string) int { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| | |\n| --- | --- |\n| Output | %s |\n| Fields | %s |\n", kind, capital(c.Summary), outputOf(view), rowFields(t, kind))
		for _, option := range viewOptions(t, kind) {
			b.WriteString(option)
		}
		for _, s := range c.Settings {
			fmt.Fprintf(&b, "| `--with %s=` | %s Default: `%s`. |\n", s.Key, s.Meaning, s.Default)
		}
	}
	return b.String()
}

// outputOf describes the output of a view.
func outputOf(view sinks.View) string {
	if view.Container() == sinks.Dir {
		return "a directory with a file for each episode"
	}
	return "`" + view.Container() + "`, unless `-o` or `--container` says otherwise"
}

// rowFields lists the keys of the rows in the golden file of a view.
func rowFields(t *testing.T, kind string) string {
	raw, err := os.ReadFile(filepath.Join(repository, "sinks/views/testdata", kind+".golden"))
	if err != nil {
		t.Fatalf("%v: write it with go test ./sinks/views -update", err)
	}
	keys := map[string]bool{}
	for _, part := range regexp.MustCompile(`(?m)^(== |map\[).*\n`).Split(string(raw), -1) {
		dec := json.NewDecoder(strings.NewReader(part))
		for dec.More() {
			var row map[string]any
			if err := dec.Decode(&row); err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			for key := range row {
				keys[key] = true
			}
		}
	}
	if len(keys) == 0 {
		t.Errorf("the golden file of %s has no rows", kind)
	}
	return "`" + strings.Join(slices.Sorted(maps.Keys(keys)), "`, `") + "`"
}

// viewOptions returns a table row for each option of a view. It gets the values from the
// error with which the view refuses a wrong value.
func viewOptions(t *testing.T, kind string) (rows []string) {
	for _, option := range []struct {
		name string
		with sinks.ViewOptions
	}{
		{"mask", sinks.ViewOptions{Mask: "?"}},
		{"arguments", sinks.ViewOptions{Arguments: "?"}},
		{"thinking", sinks.ViewOptions{Thinking: "?"}},
		{"tools", sinks.ViewOptions{Tools: "?"}},
		{"content-null", sinks.ViewOptions{ContentNull: "?"}},
		{"chat-template", sinks.ViewOptions{ChatTemplate: "?"}},
		{"system", sinks.ViewOptions{System: "?"}},
		{"trim", sinks.ViewOptions{Trim: "?"}},
	} {
		_, err := sinks.Views.Build(kind, nil, option.with)
		if err == nil {
			t.Fatalf("%s accepts a wrong value of --%s", kind, option.name)
		}
		if _, values, ok := strings.Cut(err.Error(), "choose one of "); ok {
			values, _, _ = strings.Cut(values, ", or omit")
			rows = append(rows, fmt.Sprintf("| `--%s` | `%s` |\n", option.name, strings.ReplaceAll(values, ", ", "`, `")))
		} else if !strings.Contains(err.Error(), "omit --"+option.name) {
			t.Fatalf("%s: %v", kind, err)
		}
	}
	return rows
}
