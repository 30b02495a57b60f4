package viewer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// Sizes at which texts are shortened, in bytes. Nothing is cut silently: the shortened text says
// how much is missing and links to all of it.
const (
	maxBlock   = 256 << 10 // a longer text shows its head and tail
	keptOfEnds = 16 << 10  // of each end
	maxPage    = 12 << 20  // a page with more text than this shows previews
	preview    = 1 << 10
)

// episodePage is one episode, as the template shows it.
type episodePage struct {
	page
	Place          placeView
	Anchor         string // prefix of the ids of elements: "" except in an export of several episodes
	ID, Task       string
	Outcome, Class string
	Facts          []param // who ran it, and how much it took
	Problem        string
	Steps          []*stepView
	Verdict        []param
	Evidence       []param // how well the texts rest on what was seen
	Warnings       []string
	Patches        []patchView // the final patch, and the gold patch if the viewer shows it
	Measures       []measureGroup
	Annotations    []schemas.AnnotationRow
	neighborhood
	ListQuery  string // query of the list that has them
	Sample     string // address of the training sample
	JSON       string
	Mark       markView
	Previews   bool   // texts are shortened because there are too many
	Search     string // what the server looked for in the steps of a long episode
	Found      []int  // steps that contain Search
	Static     bool   // part of an exported file
	trajectory sinks.Trajectory
}

type markView struct {
	Can        bool
	Mark, Note string
	Action     string
}

// stepView is one row of table steps.
type stepView struct {
	ID                         string // of the element
	Index                      int32
	Kind                       string // system, user, agent, env
	Title, Class, Phase        string
	Brief                      string // the most telling argument of the call
	Model, ModelTitle          string // address of what the model got and answered; "" if the step begins no reply
	Tags                       []tag
	Message, Reasoning         *block
	Call, Observation          *block
	Tool                       string
	Triggered                  []*block
	Stop                       *stopView
	Claims                     []claimView
	Unseen                     []string
	Error, Failed, Train, Mask bool
	MaskReason                 string
}

type tag struct{ Text, Class, Title string }

// block is a text, possibly shortened.
type block struct {
	Text, Tail string // Tail is set if the middle is missing
	Missing    string // how much is not shown; "" if everything is
	Link       string // address of the whole text
}

// blocks makes the blocks of an episode.
type blocks struct {
	base     string // address of the episode; "" in an exported file
	previews bool
}

// of returns the block of a text, or nil if there is none. field is part of the address of the
// whole text.
func (b blocks) of(text string, step int32, field string) *block {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	out := &block{}
	switch {
	case b.previews && len(text) > 2*preview:
		out.Text = visible(cutAt(text, preview))
		out.Missing = bytesText(len(text)-len(cutAt(text, preview))) + " more"
	case len(text) > maxBlock:
		head, tail := cutAt(text, keptOfEnds), cutAt(text, -keptOfEnds)
		out.Text, out.Tail = visible(head), visible(tail)
		out.Missing = bytesText(len(text)-len(head)-len(tail)) + " left out here"
	default:
		out.Text = visible(text)
		return out
	}
	out.Link = b.link(step, field)
	return out
}

// link returns the address of a whole text; "" in an exported file.
func (b blocks) link(step int32, field string) string {
	if b.base == "" {
		return ""
	}
	return fmt.Sprintf("%s/s/%d/%s", b.base, step, field)
}

// textBytes returns the size of all texts of the steps.
func textBytes(steps []schemas.StepRow) int {
	n := 0
	for i := range steps {
		s := &steps[i]
		n += len(s.Message) + len(schemas.Value(s.Reasoning)) + len(schemas.Value(s.Observation)) + len(schemas.Value(s.ArgumentsJSON)) + len(schemas.Value(s.TriggeredJSON))
	}
	return n
}

// addSteps fills in the steps of the page.
func (p *episodePage) addSteps(b blocks) {
	b.previews = textBytes(p.trajectory.Steps) > maxPage
	p.Previews = b.previews
	tracker := newTracker()
	tests := ""
	for i := range p.trajectory.Steps {
		s := &p.trajectory.Steps[i]
		v := newStepView(s, b)
		v.ID = fmt.Sprintf("%ss%d", p.Anchor, s.StepIndex)
		v.Stop = tracker.observe(s)
		if now := testsText(s); now != "" && now != tests { // steps repeat the state of the tests
			class := "good"
			if schemas.Value(s.TestsFailed) > 0 {
				class = "bad"
			}
			v.Tags, tests = append([]tag{{now, class, "tests"}}, v.Tags...), now
		}
		p.Steps = append(p.Steps, v)
	}
}

func newStepView(s *schemas.StepRow, b blocks) *stepView {
	v := &stepView{
		Index: s.StepIndex, Kind: s.Source, Title: s.Source, Phase: schemas.Value(s.Phase), Tool: schemas.Value(s.ToolName),
		Message: b.of(s.Message, s.StepIndex, "message"), Reasoning: b.of(schemas.Value(s.Reasoning), s.StepIndex, "reasoning"),
		Observation: b.of(schemas.Value(s.Observation), s.StepIndex, "observation"),
		Error:       schemas.Value(s.IsError), Train: s.Train, Mask: s.Source == "agent" && !s.Train, MaskReason: schemas.Value(s.MaskReason),
	}
	if v.Tool != "" {
		v.Title = v.Tool
		v.Call, v.Brief = b.of(callText(s), s.StepIndex, "call"), brief(s)
	}
	if s.ObservationCut() {
		v.Observation.Missing = fmt.Sprintf("cut: %s of %s", bytesText(len(*s.Observation)), bytesText(int(schemas.Value(s.ObservationBytes))))
		v.Observation.Link = b.link(s.StepIndex, "observation")
	}
	v.Class = kindClass(s)
	if b.base != "" && answersPrompt(s) {
		v.Model, v.ModelTitle = fmt.Sprintf("%s/model/%d", b.base, s.StepIndex), modelTitle(s)
	}
	for i, text := range triggered(s) {
		if t := b.of(text, s.StepIndex, fmt.Sprintf("triggered-%d", i)); t != nil {
			v.Triggered = append(v.Triggered, t)
		}
	}
	v.Claims = claimsOf(s)
	v.Unseen = unseenOf(s)
	v.Tags = tagsOf(s)
	return v
}

// triggered returns the observations that a step triggered besides its own.
func triggered(s *schemas.StepRow) []string {
	var more []struct{ Text string }
	if s.TriggeredJSON == nil {
		return nil
	}
	if err := json.Unmarshal([]byte(*s.TriggeredJSON), &more); err != nil {
		return []string{*s.TriggeredJSON}
	}
	var texts []string
	for _, o := range more {
		texts = append(texts, o.Text)
	}
	return texts
}

// kindClass returns the style class of a step.
func kindClass(s *schemas.StepRow) string {
	switch {
	case s.Source == "system" || s.Source == "user":
		return "prompt"
	case s.ToolName == nil:
		return cmp.Or(map[string]string{"agent": "agent"}[s.Source], "env")
	case *s.ToolName == "pdb":
		return "pdb"
	case s.ActionKind == "edit":
		return "edit"
	case s.ActionKind == "verify":
		return "verify"
	}
	return "tool"
}

// tagsOf returns what is worth knowing about a step besides its texts.
func tagsOf(s *schemas.StepRow) []tag {
	var tags []tag
	add := func(on bool, text, class, title string) {
		if on {
			tags = append(tags, tag{text, class, title})
		}
	}
	add(schemas.Value(s.IsError), "error: "+cmp.Or(schemas.Value(s.ErrorClass), "failed"), "bad", "the call failed")
	add(schemas.Value(s.FormatError), "format error", "bad", "the reply was not a valid call")
	add(s.ExitCode != nil && *s.ExitCode != 0, fmt.Sprintf("exit %d", schemas.Value(s.ExitCode)), "warn", "exit code of the command")
	add(s.RepeatOf != nil, fmt.Sprintf("repeats step %d", schemas.Value(s.RepeatOf)), "warn", "the same call as in an earlier step")
	add(schemas.Value(s.IsPadding), "padding", "warn", "shows nothing new, tests no edit, and no later step uses it")
	add(schemas.Value(s.GoldEdit), "gold edit", "warn", "the edit comes from the gold patch")
	add(schemas.Value(s.GoldHitHunk), "at the fix", "gold", "shows lines that the gold patch changes")
	add(!schemas.Value(s.GoldHitHunk) && schemas.Value(s.GoldHitFile), "file of the fix", "gold", "shows a file that the gold patch changes")
	add(schemas.Value(s.GoldNDiffering) > 0, plural(schemas.Value(s.GoldNDiffering), "different value"), "gold", "values that the fixed program prints differently at the same stop")
	add(schemas.Value(s.LinesNew) > 0, plural(schemas.Value(s.LinesNew), "new line"), "plain", "lines of source that no earlier step had shown")
	add(schemas.Value(s.SurpriseBits) > 0, fmt.Sprintf("%.1f bits", schemas.Value(s.SurpriseBits)), "plain", "how surprising the choice of the place is")
	if s.PromptTokens != nil || s.CompletionTokens != nil {
		add(true, fmt.Sprintf("%s → %s tokens", grouped(schemas.Value(s.PromptTokens)), grouped(schemas.Value(s.CompletionTokens))), "plain",
			"prompt"+ofWhich(s.CachedTokens, "cached")+" and reply"+ofWhich(s.ReasoningTokens, "reasoning"))
	}
	add(schemas.Value(s.LLMRetries) > 0, fmt.Sprintf("%d failed before", schemas.Value(s.LLMRetries)), "warn", "attempts at the model call that failed")
	add(s.CostUSD != nil && *s.CostUSD > 0, observe.USD(schemas.Value(s.CostUSD)), "plain", "cost of the model call")
	add(schemas.Value(s.LLMMS) >= 100, "model "+millis(schemas.Value(s.LLMMS)), "plain", "time of the model call")
	add(schemas.Value(s.EnvMS) >= 100 && s.ToolName != nil, millis(schemas.Value(s.EnvMS)), "plain", "time of the call")
	add(schemas.Value(s.ContextOp) != "" && schemas.Value(s.ContextOp) != "none", "history: "+schemas.Value(s.ContextOp), "plain", "how the prompt was shortened")
	return tags
}

// ofWhich returns how much of a number is of a kind, in parentheses; "" if that is unknown.
func ofWhich(n *int64, kind string) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf(" (%s %s)", grouped(*n), kind)
}

// prompts are the signs before the commands of tools that take nothing else.
var prompts = map[string]string{"pdb": "(Pdb) ", "bash": "$ "}

// callText returns the arguments of a call, one per line, or the text that the model wrote in place of
// a JSON object.
func callText(s *schemas.StepRow) string {
	raw := s.ShownArguments()
	dec := json.NewDecoder(strings.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') || !json.Valid([]byte(raw)) {
		return raw
	}
	sign := prompts[schemas.Value(s.ToolName)]
	var out []string
	for dec.More() {
		name, _ := dec.Token()
		var arg any
		_ = dec.Decode(&arg)
		value, isText := arg.(string)
		if isText && sign != "" && name == "command" && out == nil && !dec.More() {
			return sign + value
		}
		if !isText {
			value = jsonText(arg)
		}
		if strings.Contains(value, "\n") {
			value = "\n" + value
		}
		out = append(out, fmt.Sprintf("%s: %s", name, value))
	}
	return strings.Join(out, "\n")
}

// testsText returns how many tests passed and failed when they last ran.
func testsText(s *schemas.StepRow) string {
	if s.TestsPassed == nil && s.TestsFailed == nil {
		return ""
	}
	return fmt.Sprintf("%d passed, %d failed", schemas.Value(s.TestsPassed), schemas.Value(s.TestsFailed))
}

// brief returns the argument that tells most about a call, on one line.
func brief(s *schemas.StepRow) string {
	var args struct{ Command, Path, Pattern string }
	_ = json.Unmarshal([]byte(schemas.Value(s.ArgumentsJSON)), &args) // other arguments have no brief form
	line, _, _ := strings.Cut(cmp.Or(args.Command, args.Path, args.Pattern), "\n")
	return visible(cutAt(line, 60))
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func jsonText(v any) string {
	raw, err := schemas.CanonicalJSON(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}
