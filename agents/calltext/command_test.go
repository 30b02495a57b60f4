package calltext_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents/calltext"
	"github.com/tracesmith/tracesmith/schemas"
)

// Numbers such as G16 in the names of tests are rows of docs/internals/parity.md.

var typedTools = []schemas.ToolSchema{
	{Name: "bash", Parameters: json.RawMessage(`{"type":"object","required":["command"],"properties":{"command":{"type":"string"},"timeout":{"type":["null","number"]}}}`)},
	{Name: "view", Parameters: json.RawMessage(`{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"start":{"type":["null","integer"]},"end":{"type":["null","integer"]},"line_numbers":{"type":["null","boolean"]}}}`)},
	{Name: "probe", Parameters: json.RawMessage(`{"type":"object","properties":{"mode":{"type":"string","enum":["fast","full"]},"levels":{"type":"array","items":{"type":"integer"}},"at":{"type":"object"},"any":{},"either":{"type":["integer","string"]}}}`)},
	{Name: "submit", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)},
	{Name: "fs__read-file.v2", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)},
	{Name: "strange", Parameters: json.RawMessage(`[]`)},
}

// commandLines maps a command line to the call that it makes, or to the byte offset of the
// mistake in it and the beginning of the message.
var commandLines = map[string]string{
	// Calls.
	`submit`:                            `submit {}`,
	`  submit  `:                        `submit {}`,
	"\tsubmit\n":                        `submit {}`,
	`fs__read-file.v2`:                  `fs__read-file.v2 {}`,
	`bash command=ls`:                   `bash {"command":"ls"}`,
	`bash   command=ls  `:               `bash {"command":"ls"}`,
	`bash command= ls`:                  `bash {"command":"ls"}`,
	`bash command="ls -la"`:             `bash {"command":"ls -la"}`,
	`bash command='ls -la'`:             `bash {"command":"ls -la"}`,
	`bash command="it's"`:               `bash {"command":"it's"}`,
	`bash command='say "hi"'`:           `bash {"command":"say \"hi\""}`,
	`bash command="say \"hi\""`:         `bash {"command":"say \"hi\""}`,
	`bash command='it\'s'`:              `bash {"command":"it's"}`,
	`bash command="a\\b"`:               `bash {"command":"a\\b"}`,
	`bash command="grep '\d+'"`:         `bash {"command":"grep '\\d+'"}`,
	`bash command="one\ntwo\tthree"`:    `bash {"command":"one\ntwo\tthree"}`,
	`bash command=one\ntwo`:             `bash {"command":"one\\ntwo"}`,
	`bash command=""`:                   `bash {"command":""}`,
	`bash command=''`:                   `bash {"command":""}`,
	`bash command=a=b`:                  `bash {"command":"a=b"}`,
	`bash command="x" timeout=5`:        `bash {"command":"x","timeout":5}`,
	`bash timeout=5 command=x`:          `bash {"command":"x","timeout":5}`,
	`bash command="x"timeout=5`:         `bash {"command":"x","timeout":5}`,
	`bash command=x timeout=2.5`:        `bash {"command":"x","timeout":2.5}`,
	`bash command=x timeout=-1`:         `bash {"command":"x","timeout":-1}`,
	`bash command=x timeout="5"`:        `bash {"command":"x","timeout":5}`,
	`bash command=123`:                  `bash {"command":"123"}`,
	`bash command=true`:                 `bash {"command":"true"}`,
	`bash command=ünïcode`:              `bash {"command":"ünïcode"}`,
	"bash command=\"a\u00a0b\"":         "bash {\"command\":\"a\u00a0b\"}",
	`bash command="#no comment"`:        `bash {"command":"#no comment"}`,
	`view path=a.py start=1 end=20`:     `view {"end":20,"path":"a.py","start":1}`,
	`view path=a.py line_numbers=true`:  `view {"line_numbers":true,"path":"a.py"}`,
	`view path=a.py line_numbers=FALSE`: `view {"line_numbers":false,"path":"a.py"}`,
	`view path="with space.py"`:         `view {"path":"with space.py"}`,
	`probe mode=fast`:                   `probe {"mode":"fast"}`,
	`probe levels=[1,2]`:                `probe {"levels":[1,2]}`,
	`probe levels=[1, 2] mode=full`:     `probe {"levels":[1,2],"mode":"full"}`,
	`probe levels="[1, 2]"`:             `probe {"levels":[1,2]}`,
	`probe at={"x": [1, {"y": "} "}]}`:  `probe {"at":{"x":[1,{"y":"} "}]}}`,
	`probe any=5`:                       `probe {"any":"5"}`,
	`probe either=5`:                    `probe {"either":5}`,
	`probe either=five`:                 `probe {"either":"five"}`,
	`probe either="5"`:                  `probe {"either":"5"}`,

	// Mistakes.
	``:                                `0: the line is empty`,
	`   `:                             `3: the line is empty`,
	`2bash command=x`:                 `0: "2bash" is not a tool name`,
	`bash! command=x`:                 `0: "bash!" is not a tool name`,
	`command=x`:                       `0: "command=x" is not a tool name`,
	`bahs command=x`:                  `0: unknown tool "bahs": did you mean bash?`,
	`teleport`:                        `0: unknown tool "teleport": choose one of bash, view`,
	`bash`:                            `4: command is missing: add command=`,
	`bash timeout=5`:                  `14: command is missing`,
	`bash ls -la`:                     `5: "ls" is not key=value`,
	`bash command=ls -la`:             `16: "-la" is not key=value`,
	`bash command`:                    `5: "command" is not key=value`,
	`bash command =ls`:                `5: "command" is not key=value`,
	`bash =ls`:                        `5: "" is not an argument name`,
	`bash 1x=ls`:                      `5: "1x" is not an argument name`,
	`bash command=`:                   `13: the value of command is missing`,
	`bash command=   `:                `16: the value of command is missing`,
	`bash command="ls`:                `13: the quoted value of command has no closing quote`,
	`bash command='ls"`:               `13: the quoted value of command has no closing quote`,
	`bash command="ls\"`:              `13: the quoted value of command has no closing quote`,
	`bash command=a command=b`:        `15: command is given twice`,
	`bash comand=ls`:                  `5: unknown argument "comand": did you mean command?`,
	`submit now=yes`:                  `7: unknown argument "now": the tool takes no arguments`,
	`bash command=x timeout=soon`:     `23: timeout must be number, not "soon"`,
	`bash command=x timeout=1e999999`: `23: timeout must be number, not "1e999999"`,
	`view path=a start=one`:           `18: start must be integer, not "one"`,
	`view path=a start=1.5`:           `18: start must be integer, not 1.5`,
	`view path=a line_numbers=yes`:    `25: line_numbers must be boolean, not "yes"`,
	`probe mode=slow`:                 `11: mode must be one of fast, full`,
	`probe levels=[1,`:                `13: the value of levels is not JSON`,
	`probe levels=3`:                  `13: levels must be array, not "3"`,
	`strange x=1`:                     `8: unknown argument "x": the tool takes no arguments`,
}

// A line of key=value pairs gives a call, or a *Mistake with a byte offset. A value
// gets the type that the tool's schema gives it, with and without quotes. If the schema allows
// several types, quotes make it a text. \n in quotes is a line break.
func TestG16CommandLines(t *testing.T) {
	for line, want := range commandLines {
		call, err := calltext.ParseCommand(line, typedTools)
		got := call.Name + " " + string(call.Arguments)
		if err != nil {
			m, ok := errors.AsType[*calltext.Mistake](err)
			if !ok {
				t.Fatalf("%q: %v", line, err)
			}
			got = json.Number(itoa(m.At)).String() + ": " + m.Message
		}
		if !strings.HasPrefix(got, want) || err == nil && got != want {
			t.Errorf("%q:\n got %s\nwant %s", line, got, want)
		}
	}
}

func itoa(n int) string {
	raw, _ := json.Marshal(n)
	return string(raw)
}

func TestG16Completion(t *testing.T) {
	for line, want := range map[string]string{
		"":                    "0 bash |view |probe |submit |fs__read-file.v2 |strange ",
		"b":                   "0 bash ",
		"vi":                  "0 view ",
		"x":                   "0 ",
		"view ":               "5 path=|start=|end=|line_numbers=",
		"view p":              "5 path=",
		"view path=a.py ":     "15 start=|end=|line_numbers=",
		"view path=a.py e":    "15 end=",
		"view line_numbers=":  "18 true |false ",
		"view line_numbers=f": "18 false ",
		"probe mode=":         "11 fast |full ",
		"bash command=":       "13 ",
		"nothing x":           "8 ",
		"strange ":            "8 ",
	} {
		from, options := calltext.Complete(line, typedTools)
		if diff := cmp.Diff(want, itoa(from)+" "+strings.Join(options, "|")); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
	}
}

func FuzzParseCommand(f *testing.F) {
	for _, line := range []string{`bash command="a\n" timeout=5`, `probe at={"x":1} levels=[1, 2]`, `view path='`, "\x00=\xff"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		call, err := calltext.ParseCommand(line, typedTools)
		var m *calltext.Mistake
		switch {
		case err == nil && !json.Valid(call.Arguments):
			t.Fatalf("%q: %s", line, call.Arguments)
		case err != nil && (!errors.As(err, &m) || m.At < 0 || m.At > len(line)):
			t.Fatalf("%q: %v", line, err)
		}
		if from, _ := calltext.Complete(line, typedTools); from < 0 || from > len(line) {
			t.Fatalf("%q: %d", line, from)
		}
	})
}
