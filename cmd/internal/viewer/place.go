package viewer

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
)

// recheck is how long an index is used before the place is asked whether it has changed.
const recheck = time.Second

// place is one dataset or run with an index of its episodes. The index holds rows only; steps are
// read when an episode is opened.
type place struct {
	number int // from 1; part of addresses
	open   func(context.Context) (*wire.Data, error)

	mu       sync.RWMutex
	data     *wire.Data
	checked  time.Time
	revision string
	name     string
	version  int // counts the changes of the index
	entries  []*entry
	episodes map[string]*entry // by id
	marks    map[string]wire.Mark
	status   *observe.Status // nil: not a run, or it runs on a cluster

	cache struct { // of this version of the index
		sync.Mutex
		stats *statsPage
		kept  map[string]selected // by expression
	}
	searches stepSearches
}

// entry is a line of the list: an episode, or a job without one.
type entry struct {
	place  *place
	id     string
	row    *schemas.EpisodeRow // nil if there is no episode
	dead   *wire.DeadLetter
	open   *wire.Unfinished
	search string // what a search looks at, in lower case
}

// kind returns what the place is, for readers.
func (p *place) kind() string {
	if p.data.Dataset != nil {
		return "dataset"
	}
	return "run"
}

// refresh reloads the index if the place has changed. While another request uses the index, which a
// search does for as long as it reads steps, the index stays as it is. The caller must not hold p.mu.
func (p *place) refresh(ctx context.Context) error {
	if !p.mu.TryLock() {
		return nil
	}
	defer p.mu.Unlock()
	if p.data != nil && time.Since(p.checked) < recheck {
		return nil
	}
	if p.data == nil {
		data, err := p.open(ctx)
		if err != nil {
			return err
		}
		data.SkipDamaged()
		p.data = data
	}
	revision, err := p.data.Revision(ctx)
	if err != nil {
		return err
	}
	p.readStatus(ctx)
	if revision != p.revision {
		if err := p.reload(ctx); err != nil {
			return err
		}
		p.revision = revision
	}
	p.checked = time.Now()
	return nil
}

// readStatus reads how far a run is. A run on a cluster has no status in its directory.
func (p *place) readStatus(ctx context.Context) {
	p.status = nil
	if p.data.Dataset == nil {
		if status, err := wire.LocalStatus(ctx, strings.TrimPrefix(p.data.Place, "file://")); err == nil {
			p.status = &status
		}
	}
}

// reload reads the rows. It opens a dataset again, because its latest version has changed.
func (p *place) reload(ctx context.Context) error {
	old := p.episodes
	if p.data.Dataset != nil && p.version > 0 {
		data, err := p.open(ctx)
		if err != nil {
			return err
		}
		data.SkipDamaged()
		_ = p.data.Close()
		p.data, old = data, nil
		p.searches.clear()
	}
	marks, err := p.data.Marks()
	if err != nil {
		return err
	}
	var entries []*entry
	for _, e := range old {
		entries = append(entries, e)
	}
	for row, err := range p.data.Rows(ctx, func(id string) bool { return old[id] != nil }) {
		if err != nil {
			return err
		}
		entries = append(entries, &entry{place: p, id: row.EpisodeID, row: &row, search: searchText(&row)})
	}
	if p.data.Dataset == nil {
		slices.SortFunc(entries, byStart)
	}
	p.episodes = map[string]*entry{}
	for _, e := range entries {
		p.episodes[e.id] = e
	}
	dead, err := p.data.DeadLetters(ctx)
	if err != nil {
		return err
	}
	for _, d := range dead {
		entries = append(entries, &entry{place: p, id: d.UnitKey, dead: &d, search: strings.ToLower(strings.Join(
			[]string{d.UnitKey, d.Instance, schemas.Value(d.ErrorClass), schemas.Value(d.ErrorMessage), schemas.Value(d.InputRef)}, "\n"))})
	}
	unfinished, err := p.data.Unfinished(ctx)
	if err != nil {
		return err
	}
	for _, u := range unfinished {
		if !u.Dead {
			entries = append(entries, &entry{place: p, id: u.ID, open: &u, search: strings.ToLower(u.ID + "\n" + u.Instance)})
		}
	}
	p.entries, p.marks = entries, marks
	p.version++
	p.cache.stats, p.cache.kept = nil, map[string]selected{}
	return nil
}

// byStart compares episodes of a run, whose objects have no meaningful order.
func byStart(a, b *entry) int {
	return cmp.Or(a.row.CreatedAt.Compare(b.row.CreatedAt), strings.Compare(a.id, b.id))
}

func searchText(e *schemas.EpisodeRow) string {
	return strings.ToLower(strings.Join([]string{
		e.EpisodeID, e.InstanceID, e.Repo, e.AgentName, e.Model, e.ExitReason, schemas.Value(e.Outcome), schemas.Value(e.BugKind),
		schemas.Value(e.VerifyReason), schemas.Value(e.ErrorMessage), schemas.Value(e.ProblemStatement),
	}, "\n"))
}

// running returns the status of a run that a process is working on, or nil.
func (p *place) running() *observe.Status {
	if p.status == nil || !p.status.Live() {
		return nil
	}
	return p.status
}
