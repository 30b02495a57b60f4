package kubetest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// event is one change. It is kept for watches that begin at an older version.
type event struct {
	version int64
	name    string
	kind    string
	object  json.RawMessage
}

// record records a change of p and wakes the watches. The caller holds s.mu.
func (s *Server) record(kind string, p *pod) {
	s.version++
	p.ResourceVersion = strconv.FormatInt(s.version, 10)
	raw, err := json.Marshal(&p.Pod)
	if err != nil {
		panic(err) // a Pod can always be encoded
	}
	s.history = append(s.history, event{s.version, p.Name, kind, raw})
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) listOrWatch(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") == "true" {
		s.handle("watch", s.watch)(w, r)
		return
	}
	s.handle("list", s.list)(w, r)
}

// list returns two pods per page, so that tests cover paging.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	sel, err := labels.Parse(q.Get("labelSelector"))
	if err != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), 0)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	out.ResourceVersion = strconv.FormatInt(s.version, 10)
	from := q.Get("continue")
	last := ""
	for _, name := range sortedKeys(s.pods) {
		p := s.pods[name]
		if name <= from || !sel.Matches(labels.Set(p.Labels)) {
			continue
		}
		if len(out.Items) == 2 {
			out.Continue = last
			break
		}
		out.Items, last = append(out.Items, p.Pod), name
	}
	answer(w, http.StatusOK, out)
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	name, _ := strings.CutPrefix(q.Get("fieldSelector"), "metadata.name=")
	from, err := strconv.ParseInt(q.Get("resourceVersion"), 10, 64)
	if err != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "resourceVersion: "+err.Error(), 0)
		return
	}
	bound := 10 * time.Minute
	if n, err := strconv.Atoi(q.Get("timeoutSeconds")); err == nil {
		bound = time.Duration(n) * time.Second
	}
	end := time.NewTimer(bound)
	defer end.Stop()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	send := func(kind string, object any) bool {
		return json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": object}) == nil && flush.Flush() == nil
	}
	for {
		s.mu.Lock()
		events, changed := s.history, s.changed
		s.mu.Unlock()
		for _, e := range events {
			if e.version <= from || name != "" && e.name != name {
				continue
			}
			if s.count("event").replaceEvent(send) {
				return
			}
			if from = e.version; !send(e.kind, e.object) {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-end.C:
			return
		case <-changed:
		}
	}
}
