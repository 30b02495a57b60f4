package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/schemas"
)

// Numbers such as F6 in the names of tests are rows of docs/internals/parity.md.

// A cut keeps the task and the newest turns, and only whole turns. It drops many turns at once,
// so that each prompt extends the one before it until the next cut.
func TestF6CutKeepsTheTaskAndTheNewestTurns(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  history.Config
		want func(kept, size int) bool
	}{
		"steps":  {history.Config{MaxSteps: 10}, func(kept, _ int) bool { return kept <= 10 && kept >= 6 }},
		"one":    {history.Config{MaxSteps: 1}, func(kept, _ int) bool { return kept == 1 }},
		"tokens": {history.Config{MaxTokens: 3000}, func(_, size int) bool { return size <= 3000 }},
		"both":   {history.Config{MaxSteps: 12, MaxTokens: 2000}, func(kept, size int) bool { return kept <= 12 && size <= 2000 }},
		"off":    {history.Config{MaxSteps: -1, MaxTokens: -1}, func(int, int) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			m := &model{factor: 1.4}
			conv := newConversation(t, m, c.cfg, llms.Traits{}, llms.Sampling{})
			conv.turns(t, 60, 100)
			firstCut := 0 // the first turn whose prompt lacks turns
			for i, prompt := range m.prompts {
				if i == 0 {
					continue
				}
				wellFormed(t, prompt, fmt.Sprintf("turn %d", i))
				kept := 0
				for _, p := range prompt {
					if p.Role == "assistant" {
						kept++
					}
				}
				if firstCut == 0 && kept < i {
					firstCut = i
				}
				if size := int(float64(tokens.For("m").Prompt(llms.Request{Messages: prompt})) * 1.4); firstCut > 0 && !c.want(kept, size) {
					t.Errorf("prompt %d has %d turns and %d tokens", i, kept, size)
				}
				if noted := strings.HasSuffix(prompt[1].Content, "\n\n"+history.Note); noted != (kept < i) {
					t.Errorf("prompt %d of %d turns: note %v", i, kept, noted)
				}
			}
			if (firstCut == 0) != (name == "off") {
				t.Errorf("first cut at turn %d", firstCut)
			}
			if b, c := prefixBreaks(m.prompts), cuts(conv.steps); b != c || name != "off" && name != "one" && (c < 2 || c > 25) {
				t.Errorf("%d prompts do not extend their predecessor, but there are %d cuts", b, c)
			}
		})
	}
}

// No prompt exceeds the model's limit, although the server counts tokens differently. Until the
// server reports a count, the builder overestimates. Then it scales its own counts.
func TestPromptsStayBelowTheLimitOfTheModel(t *testing.T) {
	for _, factor := range []float64{0.6, 1, 1.2, 2.5} {
		m := &model{factor: factor, limit: 5000}
		conv := newConversation(t, m, history.Config{}, llms.Traits{ContextLimit: 6000}, llms.Sampling{MaxTokens: new(1000)})
		conv.turns(t, 50, 200)
		if m.asked != 50 {
			t.Errorf("factor %v: %d prompts were refused", factor, m.asked-50)
		}
		if cuts(conv.steps) == 0 {
			t.Errorf("factor %v: nothing was cut", factor)
		}
	}
}

// If the limit is unknown, the builder learns it from the server's refusals, and remembers it for
// later turns. It shortens and resends a prompt up to three times.
func TestG6OverflowIsCutAndAskedAgain(t *testing.T) {
	m := &model{factor: 1, limit: 4000}
	conv := newConversation(t, m, history.Config{}, llms.Traits{}, llms.Sampling{})
	conv.turns(t, 80, 100)
	refused := m.asked - 80
	if n := cuts(conv.steps); refused == 0 || n < 3 || refused > n || prefixBreaks(m.prompts) != n {
		t.Errorf("%d refusals, %d cuts, %d breaks", refused, n, prefixBreaks(m.prompts))
	}
	calls := 0
	for _, s := range conv.steps {
		if s.Reply != nil {
			calls += s.Reply.LLMCalls
			if s.Reply.Retries != s.Reply.LLMCalls-1 {
				t.Errorf("%d calls, %d retries", s.Reply.LLMCalls, s.Reply.Retries)
			}
		}
	}
	if calls != m.asked {
		t.Errorf("%d calls are on record, %d were made", calls, m.asked)
	}

	for serverLimit, maxPerCut := range map[int]int{4000: 1, 3: 2} { // serverLimit is the limit in the server's refusal; the builder ignores 3 as implausible
		m := &model{factor: 1, limit: 4000, serverLimit: serverLimit}
		conv := newConversation(t, m, history.Config{}, llms.Traits{}, llms.Sampling{})
		conv.turns(t, 80, 100)
		if n := cuts(conv.steps); m.asked == 80 || m.asked > 80+maxPerCut*n || n < 3 || n > 8 {
			t.Errorf("reported limit %d: %d refusals, %d cuts", serverLimit, m.asked-80, n)
		}
		if n := m.asked - 80; serverLimit == 4000 && n != 1 {
			t.Errorf("a reported limit was learned from %d refusals", n)
		}
	}

	m.limit, m.asked = 1, 0
	if _, err := conv.turn(t, ""); llms.ClassOf(err) != llms.ClassContext {
		t.Errorf("a server that refuses everything: %v", err)
	}
	if m.asked < 2 || m.asked > 4 {
		t.Errorf("asked %d times, want 4 at most", m.asked)
	}
	alone := &model{factor: 1, limit: 1}
	if _, err := newConversation(t, alone, history.Config{}, llms.Traits{}, llms.Sampling{}).turn(t, ""); llms.ClassOf(err) != llms.ClassContext || alone.asked > 4 {
		t.Errorf("a task that is too long: %v after %d calls", err, alone.asked)
	}
	if _, err := newConversation(t, &model{factor: 1}, history.Config{}, llms.Traits{}, llms.Sampling{}).builder.Ask(t.Context(), failing{}, numbered(opening()), llms.Request{}); llms.ClassOf(err) != llms.ClassServer {
		t.Errorf("another failure: %v", err)
	}
}

// failing refuses every request with a server error.
type failing struct{ llms.Client }

func (failing) Chat(context.Context, llms.Request) (llms.Response, error) {
	return llms.Response{}, &llms.Error{Class: llms.ClassServer}
}

// A tool's output that alone is too long for the prompt is trimmed at the configured place. Later
// prompts trim it in the same way. The record keeps the whole output.
func TestF7LongAnswerIsTrimmed(t *testing.T) {
	text := "FIRST " + strings.Repeat("mïddlé ", 20_000) + "LAST"
	for where, want := range map[string][2]bool{"": {true, true}, "middle": {true, true}, "start": {false, true}, "end": {true, false}} {
		m := &model{factor: 1.3, limit: 8000}
		conv := newConversation(t, m, history.Config{MaxTokens: 8000, Trim: where}, llms.Traits{}, llms.Sampling{})
		conv.turns(t, 5, 20)
		if _, err := conv.turn(t, text); err != nil {
			t.Fatal(err)
		}
		conv.turns(t, 2, 20)
		op := conv.steps[len(conv.steps)-1].Reply
		if op == nil {
			op = conv.steps[len(conv.steps)-2].Reply
		}
		if len(op.Context.Trimmed) == 0 || op.Context.Kind() != schemas.ContextTrim {
			t.Fatalf("the reply does not record the trim: %+v", op.Context)
		}
		shown, byCall := "", map[string]string{}
		for _, p := range m.prompts[len(m.prompts)-2:] {
			for _, msg := range p {
				if msg.Role == "tool" && strings.Contains(msg.Content, "omitted here") {
					if before, ok := byCall[msg.ToolCallID]; ok && msg.Content != before {
						t.Errorf("the output of %s is trimmed differently in the next prompt", msg.ToolCallID)
					}
					shown, byCall[msg.ToolCallID] = msg.Content, msg.Content
				}
			}
		}
		if len(byCall) == 0 {
			t.Errorf("%q: no output is trimmed", where)
		}
		if got := [2]bool{strings.HasPrefix(shown, "FIRST"), strings.Contains(shown, "LAST")}; got != want {
			t.Errorf("%q: first and last are shown %v, want %v", where, got, want)
		}
		if !utf8.ValidString(shown) {
			t.Errorf("%q: a character was split", where)
		}
		if m.asked != 8 {
			t.Errorf("%q: %d calls for 8 turns", where, m.asked)
		}
		if b, c := prefixBreaks(m.prompts), cuts(conv.steps); b != c {
			t.Errorf("%q: %d prompts do not extend the one before, %d cuts", where, b, c)
		}
	}
	if _, err := history.New(history.Config{Trim: "left"}, "", &model{}, llms.Sampling{}); err == nil || !strings.Contains(err.Error(), "start, middle or end") {
		t.Errorf("unknown trim setting: %v", err)
	}
}

// A trim counts characters, not bytes, and its mark says how many are missing. A trim whose range
// does not fit the text leaves it unchanged.
func TestG8TrimIsExact(t *testing.T) {
	for _, c := range []struct {
		from, to  int
		text, out string
	}{
		{2, 4, "äöüß€", "äö…€"}, {0, 2, "abc", "…c"}, {1, 3, "abc", "a…"}, {0, 0, "abc", "…abc"}, {3, 3, "abc", "abc…"},
		{0, 4, "abc", "abc"}, {2, 1, "abc", "abc"}, {-1, 1, "abc", "abc"}, {0, 0, "", "…"},
	} {
		if got := (schemas.Trim{From: c.from, To: c.to, Mark: "…"}).Apply(c.text); got != c.out {
			t.Errorf("%d-%d of %q: %q, want %q", c.from, c.to, c.text, got, c.out)
		}
	}
	m := &model{factor: 1}
	conv := newConversation(t, m, history.Config{MaxTokens: 1000}, llms.Traits{}, llms.Sampling{})
	if _, err := conv.turn(t, strings.Repeat("値 ", 5000)); err != nil {
		t.Fatal(err)
	}
	reply, err := conv.turn(t, "")
	if err != nil {
		t.Fatal(err)
	}
	trim := reply.Context.Trimmed[0]
	if trim.Step != 3 || trim.From <= 0 || trim.To-trim.From < 8000 || !strings.Contains(trim.Mark, fmt.Sprint(trim.To-trim.From, " characters")) {
		t.Errorf("trim %+v", trim)
	}
	if size := tokens.For("m").Prompt(llms.Request{Messages: m.prompts[1]}); size > 1000 || size < 400 {
		t.Errorf("the prompt has %d tokens of 1000", size)
	}
}

// In every style, a cut drops whole turns. An opening that is longer than the limit is still
// sent, and the server decides whether to accept it.
func TestG7OnlyWholeTurnsGo(t *testing.T) {
	for _, style := range []string{"", history.TextStyle} {
		m := &model{factor: 1}
		b, err := history.New(history.Config{MaxTokens: 1500}, style, m, llms.Sampling{})
		if err != nil {
			t.Fatal(err)
		}
		conv := &conversation{model: m, steps: numbered(opening()), builder: b}
		conv.turns(t, 40, 60)
		if cuts(conv.steps) < 2 || cuts(conv.steps) != prefixBreaks(m.prompts) {
			t.Errorf("%q: %d cuts, %d breaks", style, cuts(conv.steps), prefixBreaks(m.prompts))
		}
		for i, prompt := range m.prompts {
			if style == "" {
				if i > 0 {
					wellFormed(t, prompt, fmt.Sprintf("turn %d", i))
				}
				continue
			}
			want := "user"
			for _, msg := range prompt[1:] {
				if msg.Role != want || msg.ToolCalls != nil || msg.ToolCallID != "" || strings.Contains(msg.Content, "</view>") {
					t.Fatalf("prompt %d: role %s, want %s", i, msg.Role, want)
				}
				want = map[string]string{"user": "assistant", "assistant": "user"}[want]
			}
		}
	}
	m := &model{factor: 1}
	conv := newConversation(t, m, history.Config{MaxTokens: 5}, llms.Traits{}, llms.Sampling{})
	if _, err := conv.turn(t, "x"); err != nil || len(m.prompts[0]) != 2 {
		t.Errorf("an opening that is longer than the limit: %v", err)
	}
}

func TestG5SystemTextBeginsTheUserMessage(t *testing.T) {
	m := &model{factor: 1}
	conv := newConversation(t, m, history.Config{MaxSteps: 3}, llms.Traits{NoSystem: true}, llms.Sampling{})
	conv.turns(t, 8, 20)
	for i, prompt := range m.prompts {
		if slices.ContainsFunc(prompt, func(m llms.Message) bool { return m.Role == "system" }) {
			t.Errorf("prompt %d has a system message", i)
		}
		if !strings.HasPrefix(prompt[0].Content, "You are a debugger.\n\nFix the bug in a.py.\n\n1 failed") || prompt[0].Role != "user" {
			t.Errorf("prompt %d begins with %+v", i, prompt[0])
		}
	}
	if got := conv.steps[3].Reply.Context; got == nil || got.SystemAs != "user" || got.Kind() != schemas.ContextNone {
		t.Errorf("recorded %+v", got)
	}
}

// A conversation that is resumed from a log sends the same prompts as before.
func TestResumedConversationSendsTheSamePrompts(t *testing.T) {
	for name, m := range map[string]*model{"counted": {factor: 1.7}, "not counted": {factor: 1, hidesUsage: true}, "refusing": {factor: 1, limit: 2500}} {
		cfg := history.Config{MaxTokens: 3000}
		conv := newConversation(t, m, cfg, llms.Traits{}, llms.Sampling{})
		conv.turns(t, 40, 80)
		if cuts(conv.steps) < 3 {
			t.Fatalf("%s: %d cuts", name, cuts(conv.steps))
		}
		for turn := range 40 {
			var before []schemas.Step
			for _, s := range conv.steps {
				if s.Turn < turn {
					before = append(before, s)
				}
			}
			raw, err := json.Marshal(before)
			if err != nil {
				t.Fatal(err)
			}
			var read []schemas.Step
			if err := json.Unmarshal(raw, &read); err != nil {
				t.Fatal(err)
			}
			again := &model{factor: m.factor, hidesUsage: m.hidesUsage, limit: m.limit}
			if _, err := newConversation(t, again, cfg, llms.Traits{}, llms.Sampling{}).builder.Ask(t.Context(), again, read, llms.Request{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(m.prompts[turn], again.prompts[0]); diff != "" {
				t.Fatalf("%s, turn %d: %s", name, turn, diff)
			}
		}
	}
}

func TestInvalidSettings(t *testing.T) {
	for _, c := range []struct {
		traits llms.Traits
		s      llms.Sampling
		want   string
	}{
		{llms.Traits{ContextLimit: 1000}, llms.Sampling{MaxTokens: new(1000)}, "leaves no room for a prompt"},
		{llms.Traits{Vocabulary: "o300k"}, llms.Sampling{}, "cl100k_base"},
	} {
		if _, err := history.New(history.Config{}, "", llms.WithTraits(&model{}, c.traits), c.s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.traits, err, c.want)
		}
	}
}
