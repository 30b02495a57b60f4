package views

import (
	"regexp"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	sinks.Views.Register(plugin.Spec[sinks.View, sinks.ViewOptions]{
		Kind: "infoseek-locate", Summary: "issue, the places that a verified patch changed, and files viewed but not changed",
		New: func(_ any, o sinks.ViewOptions) (sinks.View, error) {
			o, err := supportedOptions{mask: recordMasks, noConversation: true}.check(o)
			return &infoseekLocate{o, requirement{
				what:   "no verified pass has a usable patch",
				remedy: "select verified passes; add --allow-gold if their patches come from the gold patch",
			}}, err
		},
	})
}

// infoseekLocate pairs an issue with the places of its fix. Positives are the lines that
// the patch changes, with their numbers before the patch. Hard negatives are program files
// that the agent looked at and that the patch does not change. Tests are not negatives,
// because reading the failing test leads to the fix.
type infoseekLocate struct {
	opts sinks.ViewOptions
	requirement
}

type locateRow struct {
	Query         string      `json:"query" parquet:"query"`
	Positives     []lineRange `json:"positives" parquet:"positives,list"`
	HardNegatives []string    `json:"hard_negatives" parquet:"hard_negatives,list"`
	Source        string      `json:"patch_source" parquet:"patch_source"`
	EpisodeID     string      `json:"episode_id" parquet:"episode_id"`
	InstanceID    string      `json:"instance_id" parquet:"instance_id"`
	Repo          string      `json:"repo" parquet:"repo"`
	Split         string      `json:"split" parquet:"split"`
}

// lineRange is a range of lines before the patch, 1-based and inclusive. For a new file,
// Start and End are 0.
type lineRange struct {
	Path  string `json:"path" parquet:"path"`
	Start int64  `json:"start" parquet:"start"`
	End   int64  `json:"end" parquet:"end"`
}

func (*infoseekLocate) Container() string { return sinks.JSONLGz }

func (v *infoseekLocate) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	notes := sinks.Notes{}
	if _, err := conversationsOf(t, v.opts, sinks.Notes{}); err != nil {
		return nil, notes, err
	}
	patch, source := verifiedPatch(t, v.opts, notes)
	v.observe(patch != "")
	if patch == "" {
		return nil, notes, nil
	}
	positives, err := changedRanges(patch)
	if err != nil || len(positives) == 0 {
		notes["rows_dropped_patch"]++
		return nil, notes, nil
	}
	e := t.Episode
	row := locateRow{
		Query: issueOf(t), Positives: positives, HardNegatives: inspectedFiles(t, positives), Source: source,
		EpisodeID: e.EpisodeID, InstanceID: e.InstanceID, Repo: e.Repo, Split: e.Split,
	}
	return []sinks.Row{{Value: row, Columns: row, Texts: []string{row.Query}}}, notes, nil
}

// changedRanges returns, for each hunk of a unified diff, the lines that it removes or after
// which it adds lines.
func changedRanges(patch string) ([]lineRange, error) {
	files, _, err := gitdiff.Parse(strings.NewReader(patch))
	if err != nil {
		return nil, err
	}
	var out []lineRange
	for _, f := range files {
		name := f.OldName
		if f.IsNew || name == "" {
			out = append(out, lineRange{Path: f.NewName})
			continue
		}
		for _, hunk := range f.TextFragments {
			start := hunk.OldPosition + hunk.LeadingContext
			out = append(out, lineRange{name, start, start + max(hunk.LinesDeleted, 1) - 1})
		}
	}
	return out, nil
}

// inspectedFiles returns the files that the agent looked at, in order, without the positives
// and without tests.
func inspectedFiles(t sinks.Trajectory, positives []lineRange) []string {
	out := []string{}
	tests := testNames(t)
	for _, s := range t.Steps {
		if !strings.HasPrefix(s.ActionKind, "seek_") || schemas.Value(s.ToolCategory) == "listdir" || s.IsError != nil && *s.IsError {
			continue
		}
		for _, target := range s.Targets {
			path := fileOfTarget(target)
			if path != "" && !tests.contains(path) && !slices.Contains(out, path) && !slices.ContainsFunc(positives, func(p lineRange) bool { return p.Path == path }) {
				out = append(out, path)
			}
		}
	}
	return out
}

// Names of tests in the answers of an episode: file::test of pytest, and the dotted names
// of unittest.
var (
	nodeID     = regexp.MustCompile(`([^\s"'()\[\]]+\.py)::\w`)
	dottedTest = regexp.MustCompile(`(?m)^(?:FAIL|ERROR): \w+ \(([\w.]+)\)|^\s*([\w.]+) \((?:failed|error)\)$`)
)

// namedTests holds the tests that the answers of an episode name.
type namedTests struct{ files, dotted []string }

func testNames(t sinks.Trajectory) namedTests {
	var out namedTests
	for _, s := range t.Steps {
		for _, m := range nodeID.FindAllStringSubmatch(schemas.Value(s.Observation), -1) {
			out.files = append(out.files, m[1])
		}
		for _, m := range dottedTest.FindAllStringSubmatch(schemas.Value(s.Observation), -1) {
			out.dotted = append(out.dotted, m[1]+m[2])
		}
	}
	return out
}

// contains reports whether a file is a test, by its own name or because a test runner named it.
func (n namedTests) contains(file string) bool {
	module := strings.ReplaceAll(strings.TrimSuffix(file, ".py"), "/", ".")
	return schemas.IsTest(file) ||
		slices.ContainsFunc(n.files, func(f string) bool {
			return f == file || strings.HasSuffix(file, "/"+f) || strings.HasSuffix(f, "/"+file)
		}) ||
		slices.ContainsFunc(n.dotted, func(d string) bool { return inModule(d, module) })
}

// inModule reports whether a dotted name is a class or a method of a module. The name may
// lack the first parts of the module's path, because runners start in any directory.
func inModule(dotted, module string) bool {
	for range 2 { // module.Class, module.Class.method
		at := strings.LastIndexByte(dotted, '.')
		if at < 0 {
			return false
		}
		dotted = dotted[:at]
		if module == dotted || strings.HasSuffix(module, "."+dotted) {
			return true
		}
	}
	return false
}
