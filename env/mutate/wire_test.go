package mutate

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

// FuzzAnswers checks that any output of the mutator is either valid or refused.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"id":1,"sites":[{"id":"0123456789abcdef","file":"a.py","line":1,"end_line":1,"start":0,"end":1,"func":"f","operator":"r1","family":"x","note":"n"}]}`))
	f.Add([]byte(`{"id":1,"patch":"ZA==","funcs":[{"file":"a.py","name":"f","line":1,"end_line":2,"before":"","after":""}]}`))
	f.Add([]byte(`{"id":1,"refused":"why"}`))
	f.Add([]byte(`{"id":1e99}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var l listing
		if err := decode(line, request{ID: 1, File: "a.py"}, &l); err == nil {
			for _, s := range l.Sites {
				if s.File != "a.py" || s.Line < 1 || s.EndLine < s.Line || len(s.Note) > maxText {
					t.Errorf("accepted %+v", s)
				}
			}
		}
		var c change
		if err := decode(line, request{ID: 1, File: "a.py"}, &c); err == nil {
			if len(c.Patch) == 0 || c.Funcs[0].File != "a.py" {
				t.Errorf("accepted %+v", c)
			}
		}
	})
}

// fakeTerminal is a terminal that answers every request with the same output.
type fakeTerminal struct {
	env.Terminal
	output string
	chunk  []byte
}

func (l *fakeTerminal) Write(_ context.Context, p []byte) error {
	var r request
	if err := json.Unmarshal(p, &r); err != nil {
		return err
	}
	l.chunk = []byte(strings.ReplaceAll(l.output, "ID", string(rune('0'+r.ID))))
	return nil
}

func (l *fakeTerminal) Read(context.Context, time.Duration) ([]byte, error) {
	if l.output == "" {
		return nil, io.EOF
	}
	if l.output == "flood" {
		return make([]byte, 1<<20), nil
	}
	c := l.chunk
	l.chunk = nil
	return c, nil
}

func (*fakeTerminal) Exit() (int, bool)           { return 139, true }
func (*fakeTerminal) Close(context.Context) error { return nil }

type fakeSandbox struct {
	env.Sandbox
	output string
}

func (h fakeSandbox) Open(context.Context, env.TerminalSpec) (env.Terminal, error) {
	return &fakeTerminal{output: h.output}, nil
}

func TestInvalidAnswersAreRefused(t *testing.T) {
	const site = `{"id":"0123456789abcdef","file":"a.py","line":1,"end_line":1,"start":0,"end":1,"func":"f","operator":"r1"}`
	for name, output := range map[string]string{
		"not JSON":           "Traceback (most recent call last):\n",
		"another request":    `{"id":9}` + "\n",
		"another file":       `{"id":ID,"sites":[{"id":"0123456789abcdef","file":"/etc/passwd","line":1,"end_line":1,"operator":"r1"}]}` + "\n",
		"a site twice":       `{"id":ID,"sites":[` + site + "," + site + "]}\n",
		"lines backwards":    `{"id":ID,"sites":[` + strings.Replace(site, `"line":1`, `"line":5`, 1) + "]}\n",
		"a long note":        `{"id":ID,"sites":[` + strings.Replace(site, `"func":"f"`, `"func":"`+strings.Repeat("f", 2000)+`"`, 1) + "]}\n",
		"an endless line":    "flood",
		"an unfinished line": `{"id":ID`,
		"end of file":        "",
		"wrong types":        `{"id":ID,"sites":3}` + "\n",
	} {
		m := &Mutator{cfg: Config{Sandbox: fakeSandbox{output: output}, Timeout: 50 * time.Millisecond}, listed: map[string]File{}}
		if name == "an endless line" {
			m.cfg.Timeout = time.Minute
		}
		got, err := m.Enumerate(t.Context(), []File{{Path: "a.py"}})
		if err != nil || len(got.Skipped) != 1 || len(got.Sites) != 0 || !strings.Contains(got.Skipped[0].Why, "did not answer") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if m.conn != nil {
			t.Errorf("%s: the program was not stopped", name)
		}
		if _, err := m.Apply(t.Context(), []Site{{ID: "0123456789abcdef", File: "a.py"}}); !errors.Is(err, errNoAnswer) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
