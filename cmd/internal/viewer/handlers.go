package viewer

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// listJSON is the list for programs. It has the schema of `tracesmith show --json`.
type listJSON struct {
	Schema   string                  `json:"schema"`
	Total    int                     `json:"total"`
	Matched  int                     `json:"matched"`
	Episodes []schemas.EpisodeRow    `json:"episodes"` // of the requested page
	Dead     []schemas.DeadLetterRow `json:"dead_letters"`
	Error    string                  `json:"error,omitempty"`
	Hits     map[string]stepHits     `json:"hits,omitempty"` // of a search in the steps, by episode id
	// Unsearched is the number of episodes that such a search left out because it had found enough.
	Unsearched int `json:"unsearched,omitempty"`
}

func (s *Server) showList(r *http.Request) (answer, error) {
	l := s.list(r.Context(), parseQuery(r.URL.Query()))
	out := listJSON{Schema: "tracesmith.episodes/1", Total: l.Total, Matched: l.Matched, Error: l.Error, Episodes: []schemas.EpisodeRow{}, Dead: []schemas.DeadLetterRow{}, Unsearched: l.unsearched}
	for _, e := range l.entries[max(0, l.From-1):l.To] {
		switch {
		case e.row != nil:
			out.Episodes = append(out.Episodes, *e.row)
			if h, ok := l.hits[e]; ok {
				if out.Hits == nil {
					out.Hits = map[string]stepHits{}
				}
				out.Hits[e.id] = h
			}
		case e.dead != nil:
			out.Dead = append(out.Dead, e.dead.DeadLetterRow)
		}
	}
	return answer{"list", l, out}, nil
}

// placeOf returns the place that a request names.
func (s *Server) placeOf(r *http.Request) (*place, error) {
	return s.placeNumbered(r.PathValue("place"))
}

func (s *Server) placeNumbered(number string) (*place, error) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(s.places) {
		return nil, fmt.Errorf("%w: there is no place %q", errNotFound, number)
	}
	return s.places[n-1], nil
}

// open reads the episode that a request names.
func (s *Server) open(r *http.Request) (*place, sinks.Trajectory, error) {
	p, err := s.placeOf(r)
	if err != nil {
		return nil, sinks.Trajectory{}, err
	}
	e := p.episodes[r.PathValue("episode")]
	if e == nil {
		return nil, sinks.Trajectory{}, fmt.Errorf("%w: %s has no episode %q", errNotFound, p.data.Place, r.PathValue("episode"))
	}
	t, err := p.data.Trajectory(r.Context(), *e.row)
	return p, t, err
}

type trajectoryJSON struct {
	Schema  string             `json:"schema"`
	Episode schemas.EpisodeRow `json:"episode"`
	Steps   []schemas.StepRow  `json:"steps"`
	Gold    string             `json:"gold_patch,omitempty"` // if the viewer shows it
}

func (s *Server) showEpisode(r *http.Request) (answer, error) {
	p, t, err := s.open(r)
	if err != nil {
		return answer{}, err
	}
	base := fmt.Sprintf("/t/%d/%s", p.number, t.Episode.EpisodeID)
	v := s.episode(p, t, "", base)
	v.ListQuery = r.URL.Query().Get("list")
	values, _ := url.ParseQuery(v.ListQuery) // what it has of a list that the viewer did not write
	current := p.episodes[t.Episode.EpisodeID]
	if v.neighborhood, err = s.neighbors(r.Context(), parseQuery(values), current); err != nil {
		if v.neighborhood, err = s.neighbors(r.Context(), query{}, current); err != nil {
			return answer{}, err
		}
	}
	_, err = p.data.MarksPath()
	mark := p.marks[t.Episode.EpisodeID]
	v.Mark = markView{Can: err == nil, Mark: mark.Mark, Note: mark.Note, Action: base + "/mark" + listOf(r)}
	v.Sample, v.JSON = base+"/sample"+listOf(r), base+"?format=json"
	if v.Search = r.URL.Query().Get("q"); v.Search != "" {
		v.Found = stepsWith(t, v.Search)
	}
	return answer{"episode", v, trajectoryJSON{"tracesmith.trajectory/1", t.Episode, t.Steps, s.gold[schemas.Value(t.Episode.TaskKey)]}}, nil
}

// listOf returns the query that names the list from which a page of an episode was opened, or "".
func listOf(r *http.Request) string {
	if list := r.URL.Query().Get("list"); list != "" {
		return "?list=" + url.QueryEscape(list)
	}
	return ""
}

// episode returns the page of an episode. base is its address, or "" in an exported file.
func (s *Server) episode(p *place, t sinks.Trajectory, anchor, base string) *episodePage {
	e := &t.Episode
	v := &episodePage{
		page: s.page(fmt.Sprintf("%s#%d", e.InstanceID, e.Attempt), "episode"), Place: p.view(), Anchor: anchor, ID: e.EpisodeID,
		Task: visible(fmt.Sprintf("%s#%d", e.InstanceID, e.Attempt)), Outcome: e.OutcomeText(), Class: outcomeClass(schemas.Value(e.Outcome)),
		Facts: facts(e), Verdict: verdict(e), Evidence: evidence(e), Warnings: e.VerifyWarnings, Measures: measures(e), Annotations: t.Annotations, Static: base == "", trajectory: t,
	}
	v.Patches = []patchView{newPatchView("Final patch", schemas.Value(e.Patch), "The episode changed no file.")}
	if s.gold != nil {
		v.Patches = append(v.Patches, newPatchView("Gold patch", s.gold[schemas.Value(e.TaskKey)], "The source of the tasks has no gold patch for this version of the task."))
	}
	v.addSteps(blocks{base: base})
	return v
}

// stepsWith returns the indexes of the steps whose texts contain a text.
func stepsWith(t sinks.Trajectory, text string) []int {
	text = strings.ToLower(text)
	var found []int
	for i := range t.Steps {
		if e, ok := excerptOf(&t.Steps[i], text); ok {
			found = append(found, int(e.Step))
		}
	}
	return found
}

// serveText serves a whole text of a step as plain text, which the browser saves.
func (s *Server) serveText(w http.ResponseWriter, r *http.Request) {
	unlock, err := s.refresh(r.Context())
	if err != nil {
		s.fail(w, err)
		return
	}
	defer unlock()
	p, t, err := s.open(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	for i := range t.Steps { // the rows of long observations have only their beginning
		if row := &t.Steps[i]; row.ObservationCut() && r.PathValue("field") == "observation" && strconv.Itoa(int(row.StepIndex)) == r.PathValue("step") {
			whole, err := p.data.Observation(r.Context(), t.Episode, row)
			if err != nil {
				s.fail(w, err)
				return
			}
			row.Observation = &whole
		}
	}
	text, ok := textOf(t, r.PathValue("step"), r.PathValue("field"))
	if !ok {
		text, err = p.modelText(t, r.PathValue("step"), r.PathValue("field"))
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="step-%s-%s.txt"`, r.PathValue("step"), r.PathValue("field")))
	_, _ = w.Write([]byte(text))
}

// textOf returns a text of a step.
func textOf(t sinks.Trajectory, step, field string) (string, bool) {
	n, err := strconv.Atoi(step)
	if err != nil {
		return "", false
	}
	at := slices.IndexFunc(t.Steps, func(s schemas.StepRow) bool { return int(s.StepIndex) == n })
	if at < 0 {
		return "", false
	}
	row := &t.Steps[at]
	switch field {
	case "message":
		return row.Message, true
	case "reasoning":
		return schemas.Value(row.Reasoning), true
	case "call":
		return schemas.Value(row.ArgumentsJSON), true
	case "observation":
		return schemas.Value(row.Observation), true
	}
	n, err = strconv.Atoi(strings.TrimPrefix(field, "triggered-"))
	if texts := triggered(row); err == nil && n >= 0 && n < len(texts) {
		return texts[n], true
	}
	return "", false
}

// maxNote is the maximum length of a note, in bytes.
const maxNote = 10_000

// saveMark stores the mark of an episode and shows the episode again.
func (s *Server) saveMark(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 2*maxNote)
	p, err := s.placeOf(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	id, mark := r.PathValue("episode"), r.PostFormValue("mark")
	note := cutAt(strings.TrimSpace(strings.ToValidUTF8(r.PostFormValue("note"), "")), maxNote)
	if mark != "" && mark != wire.MarkKeep && mark != wire.MarkReject {
		http.Error(w, "mark must be keep, reject or empty", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.episodes[id] == nil {
		s.fail(w, errNotFound)
		return
	}
	m := wire.Mark{EpisodeID: id, Mark: mark, Note: note, At: time.Now().UTC()}
	if err := p.data.AddMark(m); err != nil {
		s.fail(w, err)
		return
	}
	if p.marks[id] = m; mark == "" && note == "" {
		delete(p.marks, id)
	}
	http.Redirect(w, r, fmt.Sprintf("/t/%d/%s", p.number, url.PathEscape(id))+listOf(r), http.StatusSeeOther)
}
