package viewer_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

// The list has the columns that some line has a value for, and its tokens are those of tracesmith show.
func TestListLeavesOutEmptyColumns(t *testing.T) {
	all := many(3)
	s := open(t, "", runDir(t, all...))
	body := page(t, s, "/")
	for _, title := range []string{"pdb", "Errors", "Tokens", "Cost"} {
		if strings.Contains(body, ">"+title+"</a></th>") {
			t.Errorf("the list has the empty column %s", title)
		}
	}
	wantText(t, body, `<td class="n" data-title="Turns">2</td>`, ">Time</a></th>")
	for i := range all {
		e := &all[i].Episode
		e.SFTTokens, e.PromptTokens, e.CompletionTokens = new(int64(77)), new(int64(1000*(4-i))), new(int64(5))
	}
	all[1].Episode.PromptTokens = nil
	s = open(t, "", runDir(t, all...))
	wantText(t, page(t, s, "/"), `<td class="n" data-title="Tokens">4,005</td>`, `<td class="n"></td>`, `href="/?sort=-tokens"`)
	if got := list(t, s, "?sort=tokens"); got.Error != "" || got.Episodes[0].NTurns != 2 || got.Episodes[2].NTurns != 1 {
		t.Errorf("sorted by tokens: %+v", got)
	}
}

func TestListSaysWhyAnEpisodeEnded(t *testing.T) {
	all := many(3)
	for i, outcome := range []string{schemas.OutcomeAgentError, schemas.OutcomeLimit, schemas.OutcomeUnresolved} {
		e := &all[i].Episode
		e.Outcome, e.Resolved, e.ExitReason, e.VerifyReason = &outcome, new(false), "reason_"+outcome, new("1 of 9 expected tests did not pass")
	}
	body := page(t, open(t, "", runDir(t, all...)), "/")
	wantText(t, body, ">reason_agent_error: 1 of 9 expected tests did not pass<", ">reason_limit: 1 of 9", ">1 of 9 expected")
}

// The outcomes that the list counts are those that its lines and the head of the place show.
func TestOutcomesAreCountedAsTheyAreShown(t *testing.T) {
	all := many(8)
	all[1].Episode.GoldUsed, all[2].Episode.GoldUsed, all[4].Episode.Ending = false, false, new(schemas.EndingEdit)
	s := open(t, "", runDir(t, all...))
	body := page(t, s, "/")
	for outcome, n := range map[string]int{"resolved": 2, "resolved (derived)": 1, "resolved (reference fix)": 2, "unresolved": 3} {
		if got := list(t, s, "?outcome="+url.QueryEscape(outcome)); got.Matched != n {
			t.Errorf("%s: %d episodes, want %d", outcome, got.Matched, n)
		}
		wantText(t, body, "<span>"+outcome+"</span>")
	}
}

func TestUnmarkedEpisodesAreFound(t *testing.T) {
	all := many(3)
	dir := runDir(t, all...)
	write(t, dir+"/marks.jsonl", `{"episode_id":"`+all[1].Episode.EpisodeID+`","mark":"keep","at":"2026-01-31T00:00:00Z"}`+"\n")
	s := open(t, "", dir)
	if got := list(t, s, "?mark=unmarked"); got.Matched != 2 {
		t.Errorf("%d are unmarked, want 2", got.Matched)
	}
	wantText(t, page(t, s, "/"), "<span>unmarked</span> <span class=\"quiet\">2</span>")
}

// What is not known is not shown as zero.
func TestUnknownTokensAreNotZero(t *testing.T) {
	staged := many(1)[0]
	e, row := &staged.Episode, &staged.Steps[2]
	e.PromptTokens, e.CompletionTokens, row.PromptTokens, row.CompletionTokens = new(int64(67_150)), new(int64(2008)), new(int64(900)), new(int64(7))
	row.GoldNDiffering, row.LLMRetries = new(int32(1)), new(int32(3))
	address := "/t/1/" + e.EpisodeID
	wantText(t, page(t, open(t, "", runDir(t, staged)), address), "67,150 prompt, 2,008 reply", `title="prompt and reply"`, "1 different value<", "3 failed before<")
	e.CachedTokens, row.ReasoningTokens = new(int64(0)), new(int64(6))
	wantText(t, page(t, open(t, "", runDir(t, staged)), address), "67,150 prompt (0 cached), 2,008 reply", `title="prompt and reply (6 reasoning)"`)
}

// Statistics of many episodes take seconds, so the page first says what it does.
func TestStatisticsSayThatTheyTakeTime(t *testing.T) {
	s := open(t, "", runDir(t, many(1001)...))
	wantText(t, page(t, s, "/stats/1"), "Reading all steps of 1,001 episodes.", `http-equiv="refresh" content="0;url=/stats/1?wait=1"`)
	wantText(t, page(t, s, "/api/v1/stats/1"), `"episodes":1001`)
	for _, path := range []string{"/stats/1?wait=1", "/stats/1"} {
		if body := page(t, s, path); !strings.Contains(body, "1,001 episodes of 7 tasks") || strings.Contains(body, "http-equiv") {
			t.Errorf("%s: %s", path, body)
		}
	}
	if w := get(t, s, "/stats/2"); w.Code != http.StatusNotFound {
		t.Errorf("status %d", w.Code)
	}
}

// The claims of imported files narrow the list.
func TestListByClaim(t *testing.T) {
	staged := many(6)
	for i := range staged[:4] {
		staged[i].Episode.ClaimedResolved = new(i != 0)
	}
	s := open(t, "", runDir(t, staged...))
	wantText(t, page(t, s, "/"), "Claim of the source", "/?claimed=resolved")
	for claim, want := range map[string]int{"resolved": 3, "not+resolved": 1} {
		if got := len(list(t, s, "?claimed="+claim).Episodes); got != want {
			t.Errorf("claim %s: %d episodes, want %d", claim, got, want)
		}
	}
}

// Places with the same last part of their addresses have different names.
func TestPlacesHaveDifferentNames(t *testing.T) {
	dir := t.TempDir()
	var places []string
	for _, name := range []string{"runs/g", "data/g", "data/h"} {
		place := filepath.Join(dir, name)
		write(t, filepath.Join(place, "run.json"), `{"schema_version":"1","run_id":"run-a"}`)
		stage(t, place, many(2)...)
		places = append(places, place)
	}
	wantText(t, page(t, open(t, "", places...), "/compare?a=1&b=2"), ">runs/g</option>", ">data/g</option>", ">h</option>")
}
