package viewer

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// matches are the entries that a query asks for.
type matches struct {
	found      []*entry // before the facets narrow them
	shown      []*entry // in the order of the list
	hits       map[*entry]stepHits
	unsearched int // entries whose steps were not searched, because there are enough hits
}

// match returns the entries that a query asks for. With an error, they may be incomplete. The
// callers hold the locks of all places.
func (s *Server) match(ctx context.Context, q query) (matches, error) {
	var m matches
	var err error
	if m.found, err = find(ctx, s.places, q); err != nil {
		return m, err
	}
	m.shown = narrow(m.found, q, "")
	err = sortEntries(m.shown, q.Sort)
	if q.Steps && strings.TrimSpace(q.Search) != "" {
		if m.hits, m.unsearched, err = s.searchSteps(ctx, m.shown, q.Search); err != nil {
			return m, err
		}
		m.shown = slices.DeleteFunc(slices.Clone(m.shown), func(e *entry) bool { return m.hits[e].Steps == 0 })
		m.found = m.shown
	}
	return m, err
}

// address returns the address of an episode that is opened from a list. It contains the query of the
// list, so that the page knows the neighbors.
func (e *entry) address(q query) string {
	base := fmt.Sprintf("/t/%d/%s", e.place.number, e.id)
	if list := strings.TrimPrefix(q.with("page", ""), "/?"); list != "/" {
		return base + "?list=" + url.QueryEscape(list)
	}
	return base
}

// neighborhood is where an episode stands in a list.
type neighborhood struct {
	Previous, Next string // addresses of the episodes before and after it; "" if there is none
	List           string // address of the page of the list that has it
}

// neighbors returns where an episode stands in the list of a query. An episode that the query does
// not ask for, such as one whose mark has just changed, stands where it would without the filters.
func (s *Server) neighbors(ctx context.Context, q query, current *entry) (neighborhood, error) {
	m, err := s.match(ctx, q)
	if err != nil {
		return neighborhood{}, err
	}
	list := m.shown
	if !slices.Contains(list, current) {
		if list, err = s.insert(list, q, current); err != nil {
			return neighborhood{}, err
		}
	}
	at := slices.Index(list, current)
	out := neighborhood{List: q.with("page", "")}
	if n := at/pageSize + 1; n > 1 {
		out.List = q.with("page", fmt.Sprint(n))
	}
	for _, e := range slices.Backward(list[:at]) {
		if e.row != nil {
			out.Previous = e.address(q)
			break
		}
	}
	for _, e := range list[at+1:] {
		if e.row != nil {
			out.Next = e.address(q)
			break
		}
	}
	return out, nil
}

// insert adds an entry to a list at the place that it has in the order of all entries.
func (s *Server) insert(list []*entry, q query, added *entry) ([]*entry, error) {
	keep := map[*entry]bool{added: true}
	for _, e := range list {
		keep[e] = true
	}
	var all []*entry
	for _, p := range s.places {
		for _, e := range p.entries {
			if keep[e] {
				all = append(all, e)
			}
		}
	}
	return all, sortEntries(all, q.Sort)
}
