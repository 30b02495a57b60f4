package configs

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func load(t *testing.T, environ, overrides []string, docs ...string) (Config, error) {
	t.Helper()
	in := Input{Environ: environ, Overrides: overrides}
	for _, d := range docs {
		in.Sources = append(in.Sources, Source{Name: "run.yaml", Data: []byte(d)})
	}
	return Load(in)
}

func TestDefaultsAreValid(t *testing.T) {
	got, err := load(t, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), got); diff != "" {
		t.Error(diff)
	}
}

func TestMissingUnderscoreInAVariableIsExplained(t *testing.T) {
	_, err := load(t, []string{"TRACESMITH_NATS_URL=tls://u:pw@a", "TRACESMITH_LLM_MAX_RETRIES=1"}, nil)
	for _, want := range []string{"TRACESMITH_NATS__URL", "TRACESMITH_LLM__MAX_RETRIES"} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%v, want %s named", err, want)
		}
	}
	if _, err := load(t, []string{"TRACESMITH_NATS_PORT=tcp://10.0.0.1:4222", "TRACESMITH_PASSWORD=x", "TRACESMITH_GUEST=y"}, nil); err != nil {
		t.Errorf("variables of other programs: %v", err)
	}
}

func TestEachProfileLoads(t *testing.T) {
	if len(Profiles()) < 2 {
		t.Fatalf("profiles: %v", Profiles())
	}
	for _, name := range Profiles() {
		src, err := ReadSource(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Load(Input{Sources: []Source{src}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSettingsHaveTheDocumentedPrecedence(t *testing.T) {
	file := "run: {workers: 3, attempts: 2}\nagent: {tools: [bash]}\n"
	later := "run: {attempts: 5}\n"
	env := []string{"TRACESMITH_RUN__WORKERS=4", "TRACESMITH_AGENT__WALL=90s", "UNRELATED__X=1", "TRACESMITH_LLM__MODEL=gpt-4.1"}
	got, err := load(t, env, []string{"run.workers=5", "sandbox.memory=512MB", "agent.tools=[pdb, eval]"}, file, later)
	if err != nil {
		t.Fatal(err)
	}
	if got.Run.Workers != 5 || got.Run.Attempts != 5 || got.Agent.Wall != 90*time.Second {
		t.Errorf("got %+v", got.Run)
	}
	if got.LLM.Model != "gpt-4.1" || got.Sandbox.Memory != 512<<20 {
		t.Errorf("model %q memory %d", got.LLM.Model, got.Sandbox.Memory)
	}
	if diff := cmp.Diff(Tools("pdb", "eval"), got.Agent.Tools); diff != "" {
		t.Error(diff)
	}
}

// The settings of an agent in a profile do not apply to another agent.
func TestAnotherKindDropsTheSettings(t *testing.T) {
	profile := "agent: {kind: oracle, with: {gold_edit: true}}\n"
	for _, tc := range []struct {
		overrides []string
		want      Block
	}{
		{[]string{"agent.kind=oracle", "agent.wall=5m"}, Block{"gold_edit": true}},
		{[]string{"agent.kind=noop"}, nil},
		{[]string{"agent.with.file=a.yaml", "agent.kind=scripted"}, Block{"file": "a.yaml"}},
	} {
		got, err := load(t, nil, tc.overrides, profile)
		if diff := cmp.Diff(tc.want, got.Agent.With); err != nil || diff != "" {
			t.Errorf("%q: %v %s", tc.overrides, err, diff)
		}
	}
}

func TestBlocksKeepTheirCase(t *testing.T) {
	doc := "llm: {model: Qwen/Qwen3-Coder, extra: {chatTemplate: {Enable.Thinking: false}}}\ntasks: {source: dir, with: {path: /Data/A}}\n"
	got, err := load(t, nil, []string{"agent.with.Prompt=Seek"}, doc)
	if err != nil {
		t.Fatal(err)
	}
	want := Block{"chatTemplate": map[string]any{"Enable.Thinking": false}}
	if diff := cmp.Diff(want, got.LLM.Extra); diff != "" {
		t.Error(diff)
	}
	if got.Agent.With["Prompt"] != "Seek" || got.Tasks.With["path"] != "/Data/A" || got.LLM.Model != "Qwen/Qwen3-Coder" {
		t.Errorf("got %v %v %q", got.Agent.With, got.Tasks.With, got.LLM.Model)
	}
}

func TestProblemsNameThePlaceAndTheRemedy(t *testing.T) {
	for _, tc := range []struct{ doc, override, want string }{
		{doc: "run:\n  wokers: 3\n", want: `run.yaml:2: unknown setting "run.wokers": did you mean "workers"?`},
		{doc: "sandbox:\n  warm: 2\n", want: "run.yaml:2: sandbox.warm was removed: delete it; sandboxes start when they are needed"},
		{doc: "agent:\n  kind: demonstrator\n", want: "run.yaml:2: agent.kind demonstrator was removed: use oracle"},
		{override: "agent.kind=demonstrator", want: "-p agent.kind=demonstrator: agent.kind demonstrator was removed: use oracle"},
		{override: "sandbox.warm=0", want: "-p sandbox.warm=0: sandbox.warm was removed"},
		{doc: "agnet: {}\n", want: `did you mean "agent"?`},
		{doc: "run:\n  workers: many\n", want: `run.yaml:2: run.workers must be a whole number, not "many"`},
		{doc: "run: 3\n", want: "run.yaml:1: run must be a block of settings"},
		{doc: "agent: {tools: bash}\n", want: "agent.tools must be a list"},
		{doc: "agent:\n  tools:\n  - bash\n  - 7\n", want: "run.yaml:4: agent.tools[1] must be a tool's name, or one name with its settings"},
		{doc: "agent:\n  tools:\n  - {bash: {timeout: 3}, view: {}}\n", want: "run.yaml:3: agent.tools[0] must be"},
		{doc: "agent: {tools: [bash: slow]}\n", want: "run.yaml:1: agent.tools[0]: bash must have a block of settings, not \"slow\""},
		{doc: "agent: {tools: [~]}\n", want: "run.yaml:1: agent.tools[0] must be"},
		{doc: "agent: {wall: 5}\n", want: "agent.wall must be a duration such as 90s or 5m"},
		{doc: "sandbox: {memory: lots}\n", want: "sandbox.memory must be a size such as 512MB"},
		{doc: "run: {name: 7}\n", want: "run.name must be text"},
		{doc: "run: [\n", want: "run.yaml:1: not valid YAML: did not find"},
		{doc: "llm: {api_key: sk-12345}\n", want: "llm.api_key: never write a key here: write env:NAME"},
		{doc: "llm: {base_url: localhost}\n", want: "llm.base_url"},
		{doc: "llm: {max_tokens: -4}\n", want: "llm.max_tokens: must be at least 1; leave it out for the server's own limit"},
		{doc: "llm: {temperature: -1}\n", want: "llm.temperature: must not be negative"},
		{doc: "llm: {top_p: 1.5}\n", want: "llm.top_p: must be between 0 and 1"},
		{doc: "llm: {max_retries: -1}\n", want: "llm.max_retries: must be between 0 and 100"},
		{doc: "llm: {timeout: -1s}\n", want: "llm.timeout"},
		{doc: "tasks: {slice: x}\n", want: "tasks.slice"},
		{doc: "tasks: {source: null}\n", want: "run.yaml:1: tasks.source is empty: name a source of tasks"},
		{doc: "tasks:\n  source:\n", want: "run.yaml:2: tasks.source is empty: name a source of tasks"},
		{doc: "tasks: {source: ~}\n", want: "run.yaml:1: tasks.source is empty"},
		{doc: "tasks: {source: ''}\n", want: "run.yaml:1: tasks.source: is empty: name a source"},
		{doc: "tasks: {source: ' '}\n", want: "tasks.source: is empty: name a source"},
		{override: "tasks.source=", want: "-p tasks.source=: tasks.source is empty: name a source of tasks"},
		{override: "tasks={source: }", want: "tasks.source is empty: name a source of tasks"},
		{doc: "mcp:\n  docs:\n    comand: x\n", want: `run.yaml:3: unknown setting "mcp.docs.comand": did you mean "command"?`},
		{doc: "mcp: {docs: {command: x, timeout: 5}}\n", want: "mcp.docs.timeout must be a duration"},
		{doc: "mcp: {docs: {command: x, env: [TOKEN]}}\n", want: "mcp.docs.env must be a block of settings"},
		{doc: "mcp: {docs: {command: x, env: {TOKEN: hunter2}}}\n", want: "mcp.docs.env.TOKEN: write NAME: env:HOST_VARIABLE"},
		{doc: "mcp: {docs: {command: x, timeout: -1s}}\n", want: "mcp.docs.timeout, start_timeout: must not be negative"},
		{doc: "mcp: {docs: {}}\n", want: "mcp.docs: give either command (a program to start) or url"},
		{doc: "mcp: {docs: null}\n", want: "mcp.docs: give either command (a program to start) or url"},
		{doc: "mcp: {docs: {command: x, url: 'http://a'}}\n", want: "mcp.docs: give either"},
		{doc: "mcp: {docs: {url: 'file:///etc/passwd'}}\n", want: "mcp.docs.url: not an http(s) address"},
		{doc: "mcp: {docs: {url: 'https://u:p@a/'}}\n", want: "mcp.docs.url: no user or password"},
		{doc: "mcp: {docs: {url: 'https://a/', headers: {Authorization: Bearer abc}}}\n", want: "mcp.docs.headers.Authorization: never write a secret here"},
		{doc: "mcp: {docs: {url: 'https://a/', headers: {Host: b}}}\n", want: "is not a header that can be set"},
		{doc: "mcp: {docs: {url: 'https://a/', transport: stdio}}\n", want: "mcp.docs.transport"},
		{doc: "mcp: {docs: {command: x, scope: step}}\n", want: "mcp.docs.scope"},
		{doc: "mcp: {docs: {command: x, tools: ['[']}}\n", want: "mcp.docs.tools"},
		{doc: "mcp: {'my docs': {command: x}}\n", want: "mcp.my docs: a server id is"},
		{doc: "mcp: {docs: {command: x, prefix: 'a.b'}}\n", want: "mcp.docs.prefix"},
		{doc: "mcp: [a]\n", want: "mcp must be a block of settings"},
		{doc: "prices: [{model: a, inptu: 1}]\n", want: `did you mean "input"?`},
		{override: "run.workers", want: "-p run.workers: write -p section.key=value"},
		{override: "run..workers=1", want: "write -p section.key=value"},
		{override: "run.workers=two", want: "-p run.workers=two: run.workers must be a whole number"},
		{override: "run.workers=[", want: "-p run.workers=[: the value is not valid YAML"},
	} {
		var over []string
		if tc.override != "" {
			over = []string{tc.override}
		}
		_, err := load(t, nil, over, tc.doc)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q %q: got %v, want %q", tc.doc, tc.override, err, tc.want)
		}
	}
}

// Server ids, variables and headers keep their case, and later sources win.
func TestMCPServers(t *testing.T) {
	doc := "mcp:\n  gitHub: {command: npx, args: [-y, server], env: {GITHUB_TOKEN: 'env:TOKEN'}, tools: ['get_*']}\n" +
		"  docs: {url: 'https://docs.example/mcp', headers: {X-Api-Key: 'env:DOCS_KEY'}, prefix: '', scope: episode}\n"
	got, err := load(t, nil, []string{"mcp.docs.timeout=5s", "mcp.docs.optional=true"}, doc)
	if err != nil {
		t.Fatal(err)
	}
	ids, none := "gitHub__", ""
	want := MCP{
		"gitHub": {
			Command: "npx", Args: []string{"-y", "server"}, Env: map[string]string{"GITHUB_TOKEN": "env:TOKEN"}, Tools: []string{"get_*"},
			Transport: "stdio", Prefix: &ids, Timeout: time.Minute, StartTimeout: 30 * time.Second, Scope: "run",
		},
		"docs": {
			URL: "https://docs.example/mcp", Headers: map[string]string{"X-Api-Key": "env:DOCS_KEY"},
			Transport: "http", Prefix: &none, Timeout: 5 * time.Second, StartTimeout: 30 * time.Second, Scope: "episode", Optional: true,
		},
	}
	if diff := cmp.Diff(want, got.MCP); diff != "" {
		t.Error(diff)
	}
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	_, err := load(t, nil, nil, "run: {workers: x, atempts: 2}\nagent: {wall: 1}\n")
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v", err)
	}
}

// YAML reads null as nothing, which would choose the default agent.
func TestNullAgentIsRenamedNoop(t *testing.T) {
	for _, in := range []struct {
		doc                string
		overrides, environ []string
	}{
		{doc: "agent: {kind: null}\n"}, {doc: "agent: {kind: 'null'}\n"}, {doc: "{}", overrides: []string{"agent.kind=null"}},
		{doc: "agent: {kind: null}\n", environ: []string{"TRACESMITH_AGENT__KIND=null"}},
	} {
		got, err := load(t, in.environ, in.overrides, in.doc)
		if err != nil || got.Agent.Kind != "noop" || !slices.Equal(got.RenameNotes, []string{"agent.kind: null is called noop now"}) {
			t.Errorf("%+v: kind %q, %q, %v", in, got.Agent.Kind, got.RenameNotes, err)
		}
	}
}

func TestMissingFileNamesTheProfiles(t *testing.T) {
	_, err := ReadSource("no-such.yaml")
	if err == nil || !strings.Contains(err.Error(), "quickstart") {
		t.Errorf("got %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("run: {workers: 3}", "a.b=1")
	f.Add("agent: &x {with: *x}", "run.name=[")
	f.Add("? {a: b}\n: c", "=")
	f.Fuzz(func(t *testing.T, doc, override string) {
		cfg, err := Load(Input{Sources: []Source{{Name: "f.yaml", Data: []byte(doc)}}, Overrides: []string{override}})
		if err == nil && cfg.Validate() != nil {
			t.Error("Load let an invalid configuration through")
		}
	})
}

func TestSandboxSettingsNeedAKind(t *testing.T) {
	c := Default()
	c.Sandbox.With = Block{"image": "x"}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "sandbox.kind") {
		t.Errorf("settings without a kind: %v", err)
	}
	c.Sandbox.Kind = "docker"
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

// A value may contain "=", and 0 is a valid number.
func TestOverridesMayContainEqualsAndZero(t *testing.T) {
	got, err := load(t, nil, []string{
		"tasks.source=path", "tasks.with.entrypoint=PYTHONPATH=. pytest -k a==b --opt=x=y", "tasks.with.env={A: B=C}", "llm.model=a=b=", "llm.max_retries=0",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Block{"entrypoint": "PYTHONPATH=. pytest -k a==b --opt=x=y", "env": map[string]any{"A": "B=C"}}
	if diff := cmp.Diff(want, got.Tasks.With); diff != "" || got.LLM.Model != "a=b=" || got.LLM.MaxRetries != 0 {
		t.Errorf("model %q, retries %d, %s", got.LLM.Model, got.LLM.MaxRetries, diff)
	}
}
