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
}

func (s *Server) showList(r *http.Request) (answer, error) {
	l := s.list(r.Context(), parseQuery(r.URL.Query()))
	out := listJSON{Schema: "tracesmith.episodes/1", Total: l.Total, Matched: l.Matched, Error: l.Error, Episodes: []schemas.EpisodeRow{}, Dead: []schemas.DeadLetterRow{}}
	for _, e := range l.entries[max(0, l.From-1):l.To] {
		switch {
		case e.row != nil:
			out.Episodes = append(out.Episodes, *e.row)
		case e.dead != nil:
			out.Dead = append(out.Dead, e.dead.DeadLetterRow)
		}
	}
	return answer{"list", l, out}, nil
}

// placeOf returns the place that a request names.
func (s *Server) placeOf(r *http.Request) (*place, error) {
	n, err := strconv.Atoi(r.PathValue("place"))
	if err != nil || n < 1 || n > len(s.places) {
		return nil, fmt.Errorf("%w: there is no place %q", errNotFound, r.PathValue("place"))
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
}

func (s *Server) showEpisode(r *http.Request) (answer, error) {
	p, t, err := s.open(r)
	if err != nil {
		return answer{}, err
	}
	base := fmt.Sprintf("/t/%d/%s", p.number, t.Episode.EpisodeID)
	v := s.episode(p, t, "", base)
	v.Sample, v.JSON = base+"/sample", base+"?format=json"
	v.Previous, v.Next = p.neighbors(t.Episode.EpisodeID)
	_, err = p.data.MarksPath()
	mark := p.marks[t.Episode.EpisodeID]
	v.Mark = markView{Can: err == nil, Mark: mark.Mark, Note: mark.Note, Action: base + "/mark"}
	if v.Search = r.URL.Query().Get("q"); v.Search != "" {
		v.Found = stepsWith(t, v.Search)
	}
	return answer{"episode", v, trajectoryJSON{"tracesmith.trajectory/1", t.Episode, t.Steps}}, nil
}

// episode returns the page of an episode. base is its address, or "" in an exported file.
func (s *Server) episode(p *place, t sinks.Trajectory, anchor, base string) *episodePage {
	e := &t.Episode
	v := &episodePage{
		page: s.page(fmt.Sprintf("%s#%d", e.InstanceID, e.Attempt), "episode"), Place: p.view(), Anchor: anchor, ID: e.EpisodeID,
		Task: visible(fmt.Sprintf("%s#%d", e.InstanceID, e.Attempt)), Outcome: e.OutcomeText(), Class: outcomeClass(schemas.Value(e.Outcome)),
		Facts: facts(e), Verdict: verdict(e), Evidence: evidence(e), Warnings: e.VerifyWarnings, Measures: measures(e), Annotations: t.Annotations, Static: base == "", trajectory: t,
	}
	v.Diff, v.RawPatch = diffOf(schemas.Value(e.Patch))
	v.addSteps(blocks{base: base})
	return v
}

// neighbors returns the addresses of the episodes before and after one.
func (p *place) neighbors(id string) (previous, next string) {
	at := slices.IndexFunc(p.entries, func(e *entry) bool { return e.id == id })
	link := func(i int) string {
		if i < 0 || i >= len(p.entries) || p.entries[i].row == nil {
			return ""
		}
		return fmt.Sprintf("/t/%d/%s", p.number, p.entries[i].id)
	}
	return link(at - 1), link(at + 1)
}

// stepsWith returns the indexes of the steps whose texts contain a text.
func stepsWith(t sinks.Trajectory, text string) []int {
	text = strings.ToLower(text)
	var found []int
	for i := range t.Steps {
		s := &t.Steps[i]
		for _, field := range []string{s.Message, schemas.Value(s.Reasoning), schemas.Value(s.ArgumentsJSON), schemas.Value(s.Observation), schemas.Value(s.TriggeredJSON)} {
			if strings.Contains(strings.ToLower(field), text) {
				found = append(found, int(s.StepIndex))
				break
			}
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
		s.fail(w, errNotFound)
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
	http.Redirect(w, r, fmt.Sprintf("/t/%d/%s", p.number, url.PathEscape(id)), http.StatusSeeOther)
}
