package synth

import (
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

func TestATaskNeedsAPatchAndTests(t *testing.T) {
	sound := schemas.Task{Instructions: "It fails.", GoldPatch: "+", BugPatch: "-", Tests: schemas.TestSpec{FailToPass: []string{"a"}, PassToPass: []string{"b"}}}
	if why := unfit(sound); why != "" {
		t.Errorf("a sound task is refused: %s", why)
	}
	for want, change := range map[string]func(*schemas.Task){
		"patch is empty":   func(t *schemas.Task) { t.GoldPatch = "\n" },
		"no test fails":    func(t *schemas.Task) { t.Tests.FailToPass = nil },
		"no test passes":   func(t *schemas.Task) { t.Tests.PassToPass = nil },
		"every text of it": func(t *schemas.Task) { t.Instructions = " " },
		"its patch is em":  func(t *schemas.Task) { t.BugPatch = "" },
	} {
		task := sound
		change(&task)
		if why := unfit(task); !strings.Contains(why, want) {
			t.Errorf("%q, want %q", why, want)
		}
	}
}
