package tokens_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/schemas"
)

// Numbers such as G11 in the names of tests are rows of docs/internals/parity.md.

func mustNamed(t *testing.T, vocabulary string) *tokens.Counter {
	t.Helper()
	c, err := tokens.Named(vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The counts are those that the authors of the vocabularies publish. Names of special tokens
// count as text, and invalid UTF-8 is counted. A model whose vocabulary is derived from one of these, such as
// Qwen's, is counted with that one, and an unknown model with the default vocabulary.
func TestG11CountsWithTheModelsVocabulary(t *testing.T) {
	for _, c := range []struct {
		vocabulary, text string
		want             int
	}{
		{"cl100k_base", "antidisestablishmentarianism", 6},
		{"cl100k_base", "2 + 2 = 4", 7},
		{"cl100k_base", "お誕生日おめでとう", 9},
		{"o200k_base", "お誕生日おめでとう", 8},
		{"o200k_base", "hello world", 2},
		{"o200k_base", "", 0},
	} {
		if got := mustNamed(t, c.vocabulary).Text(c.text); got != c.want {
			t.Errorf("%s: %q has %d tokens, want %d", c.vocabulary, c.text, got, c.want)
		}
	}
	for model, want := range map[string]string{
		"gpt-4": "cl100k_base", "gpt-4-turbo": "cl100k_base", "gpt-3.5-turbo": "cl100k_base", "Qwen/Qwen3-32B": "cl100k_base",
		"gpt-4o": "o200k_base", "gpt-4.1": "o200k_base", "my-own-finetune": "o200k_base", "": "o200k_base",
	} {
		if tokens.For(model) != mustNamed(t, want) {
			t.Errorf("model %q does not use %s", model, want)
		}
	}
	if _, err := tokens.Named("o300k"); err == nil || !strings.Contains(err.Error(), "o200k_base") {
		t.Errorf("an unknown vocabulary: %v", err)
	}
	c := tokens.For("m")
	if n := c.Text("<|endoftext|>"); n < 4 {
		t.Errorf("the name of a special token has %d tokens: it was taken for the special token", n)
	}
	if n := c.Text("\xff\xfe ok"); n < 2 {
		t.Errorf("invalid UTF-8: %d tokens", n)
	}
}

// Half a megabyte of any output is counted quickly, and splitting it into pieces hardly
// changes the count.
func TestG11LongTextIsCountedQuickly(t *testing.T) {
	sum := sha256.Sum256(nil)
	noise := make([]byte, 0, 384<<10)
	for len(noise) < 384<<10 {
		sum = sha256.Sum256(sum[:])
		noise = append(noise, sum[:]...)
	}
	c := tokens.For("m")
	began := time.Now()
	for name, text := range map[string]string{
		"one letter":  strings.Repeat("a", 500_000),
		"base64":      base64.StdEncoding.EncodeToString(noise),
		"bytes":       string(noise),
		"blanks":      strings.Repeat(" ", 500_000),
		"blank lines": strings.Repeat("\n \n", 166_000),
		"rulers":      strings.Repeat("=", 500_000),
		"no spaces":   strings.Repeat("汉字处理", 40_000),
		"lines":       strings.Repeat("    return self.value + 1  # as before\n", 12_000),
	} {
		n := c.Text(text)
		if n <= 0 || n > len(text) {
			t.Errorf("%s: %d tokens in %d bytes", name, n, len(text))
		}
		if whole, first := float64(n)/float64(len(text)), float64(c.Text(text[:24_000]))/24_000; whole < first*0.9 || whole > first*1.1 {
			t.Errorf("%s: %.4f tokens per byte, its beginning has %.4f", name, whole, first)
		}
	}
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("counting took %s", took)
	}
	huge := strings.Repeat("    return self.value + 1  # as before\n", 100_000)
	if per, want := float64(c.Text(huge))/float64(len(huge)), float64(c.Text(huge[:39_000]))/39_000; per < want*0.95 || per > want*1.05 {
		t.Errorf("a text of 4 MB has %.4f tokens per byte, its beginning %.4f", per, want)
	}
}

// Pieces end where a token ends, so code has the same count as without splitting.
func TestPiecesDoNotChangeTheCountOfCode(t *testing.T) {
	line := "    return self.value + 1  # as before\n"
	c := tokens.For("m")
	if got, want := c.Text(strings.Repeat(line, 1000)), 1000*(c.Text(line+line)-c.Text(line)); got < want || got > want+2 {
		t.Errorf("%d tokens, want %d", got, want)
	}
}

func TestPromptCountsEverythingThatIsSent(t *testing.T) {
	c := tokens.For("m")
	base := llms.Request{Messages: []llms.Message{{Role: "user", Content: "fix it"}}}
	before := c.Prompt(base)
	text := strings.Repeat("word ", 500)
	for name, change := range map[string]func(*llms.Request){
		"content":     func(r *llms.Request) { r.Messages[0].Content += text },
		"another":     func(r *llms.Request) { r.Messages = append(r.Messages, llms.Message{Role: "tool", Content: text}) },
		"raw message": func(r *llms.Request) { r.Messages[0].Raw = json.RawMessage(`{"reasoning":"` + text + `"}`) },
		"arguments": func(r *llms.Request) {
			r.Messages[0].ToolCalls = []schemas.ToolCall{{Name: "edit", Arguments: json.RawMessage(`{"a":"` + text + `"}`)}}
		},
		"tools": func(r *llms.Request) { r.Tools = []schemas.ToolSchema{{Name: "edit", Description: text}} },
	} {
		r := llms.Request{Messages: []llms.Message{base.Messages[0]}}
		change(&r)
		if got := c.Prompt(r); got < before+500 || got > before+520 {
			t.Errorf("%s: %d tokens more, want about 500", name, got-before)
		}
	}
}

// From reports, a Scale learns the factor by which a server's counts differ from those of a Counter. Before the first
// report, it expects a higher count. After a few reports, it expects the right count for any factor, and it
// recovers from nonsensical reports.
func TestScaleConverges(t *testing.T) {
	for _, factor := range []float64{0.7, 1, 1.37, 3} {
		var s tokens.Scale
		if got := s.Expect(1000); got <= 1000 {
			t.Errorf("before the first report: expected %d", got)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { s.Report(1000, int64(1000*factor)) })
		}
		all.Wait()
		if got, want := float64(s.Expect(2000)), 2000*factor; got < want*0.99 || got > want*1.01+1 {
			t.Errorf("factor %v: %v, want %v", factor, got, want)
		}
		s.Report(1000, 1<<60)
		s.Report(0, 100)
		s.Report(100, 0)
		for range 16 {
			s.Report(1000, int64(1000*factor))
		}
		if got, want := float64(s.Expect(2000)), 2000*factor; got < want*0.95 || got > want*1.05 {
			t.Errorf("factor %v after nonsensical reports: %v, want %v", factor, got, want)
		}
	}
}
