// Package viewer shows datasets and runs in a browser: a list of episodes, each episode as a
// conversation, its training sample, and statistics.
//
// Everything that an episode contains is untrusted. Templates escape it, control characters become
// visible, and the Content-Security-Policy of every page lets the browser load only the style sheet
// and the script of the viewer.
package viewer

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/schemas"
)

//go:embed templates/*.tmpl assets/*
var files embed.FS

var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{"visible": visible, "about": about, "grouped": grouped[int]}).ParseFS(files, "templates/*.tmpl"))
})

// Opener opens a dataset or a run.
type Opener func(context.Context) (*wire.Data, error)

// Server answers the requests of the viewer. It is safe for concurrent use.
type Server struct {
	places []*place
	token  string // "" if any client on this machine may read
	mux    *http.ServeMux
	gold   map[string]string // patches by task; nil: pages do not show them
}

// ShowGold makes pages and exported files show gold patches, which are given by the ids of their
// tasks, beside final ones. Call it before the first request.
func (s *Server) ShowGold(patches map[string]string) { s.gold = patches }

// New opens the places and returns a server for them. If token is not empty, clients must present
// it. The caller must call Close.
func New(ctx context.Context, places []Opener, token string) (*Server, error) {
	s := &Server{token: token, mux: http.NewServeMux()}
	for i, open := range places {
		p := &place{number: i + 1, open: open}
		s.places = append(s.places, p)
		if err := p.refresh(ctx); err != nil {
			s.Close()
			return nil, err
		}
	}
	s.namePlaces()
	s.routes()
	return s, nil
}

// namePlaces gives each place the last part of its address as a name, or as many parts as tell it from the others.
func (s *Server) namePlaces() {
	parts := func(p *place) []string { return strings.Split(strings.TrimRight(p.data.Place, "/"), "/") }
	for _, p := range s.places {
		own := parts(p)
		for n := 1; n <= len(own); n++ {
			p.name = path.Join(own[len(own)-n:]...)
			if !slices.ContainsFunc(s.places, func(other *place) bool {
				theirs := parts(other)
				return other != p && path.Join(theirs[max(0, len(theirs)-n):]...) == p.name
			}) {
				break
			}
		}
	}
}

// Close closes the places.
func (s *Server) Close() {
	for _, p := range s.places {
		if p.data != nil {
			_ = p.data.Close()
		}
	}
}

// page is what all pages have.
type page struct {
	Title   string
	Name    string // of the page, for the script
	Version string // of the index; the script reloads a page whose version has changed
	Style   template.CSS
	Script  template.JS
	Policy  string // of an exported file, which has no headers
	Refresh string // address that the browser opens next; "" for none
}

func (s *Server) page(title, name string) page {
	return page{Title: title, Name: name, Version: s.version()}
}

// version identifies the state of all places.
func (s *Server) version() string {
	var out []string
	for _, p := range s.places {
		text := fmt.Sprint(p.version)
		if st := p.running(); st != nil {
			text += fmt.Sprintf("-%d-%d-%d", st.Done, st.Failed, st.Running)
		}
		out = append(out, text)
	}
	return strings.Join(out, ".")
}

// answer is what a route shows: a template with its data, and the same data for programs.
type answer struct {
	template string
	page     any
	json     any
}

// errNotFound makes the server answer with status 404.
var errNotFound = errors.New("there is no such page")

func (s *Server) routes() {
	show := func(path string, handle func(*http.Request) (answer, error)) {
		for _, prefix := range []string{"", "/api/v1"} {
			s.mux.HandleFunc("GET "+prefix+path, func(w http.ResponseWriter, r *http.Request) { s.show(w, r, handle, prefix != "") })
		}
	}
	show("/{$}", s.showList)
	show("/t/{place}/{episode}", s.showEpisode)
	show("/t/{place}/{episode}/sample", s.showSample)
	show("/t/{place}/{episode}/model/{step}", s.showModelCall)
	show("/stats/{place}", s.showStats)
	show("/compare", s.showCompare)
	show("/jobs", s.showJobs)
	s.mux.HandleFunc("GET /t/{place}/{episode}/s/{step}/{field}", s.serveText)
	s.mux.HandleFunc("POST /t/{place}/{episode}/mark", s.saveMark)
	s.mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { s.showError(w, errNotFound) })
	s.mux.HandleFunc("GET /version", s.serveVersion)
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	assets, err := fs.Sub(files, "assets")
	if err != nil {
		panic(err) // the folder is embedded
	}
	s.mux.Handle("GET /assets/", http.StripPrefix("/assets/", http.FileServerFS(assets)))
}

// refresh brings all indexes up to date and locks them for reading. unlock must be called.
func (s *Server) refresh(ctx context.Context) (unlock func(), err error) {
	for _, p := range s.places {
		if err := p.refresh(ctx); err != nil {
			return nil, err
		}
	}
	for _, p := range s.places {
		p.mu.RLock()
	}
	return func() {
		for _, p := range s.places {
			p.mu.RUnlock()
		}
	}, nil
}

// show answers a request with a page, or with JSON under /api/v1 and for format=json.
func (s *Server) show(w http.ResponseWriter, r *http.Request, handle func(*http.Request) (answer, error), api bool) {
	unlock, err := s.refresh(r.Context())
	if err != nil {
		s.fail(w, err)
		return
	}
	defer unlock()
	a, err := handle(r)
	isJSON := api || r.URL.Query().Get("format") == "json"
	if err != nil && !isJSON {
		s.showError(w, err)
		return
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	if isJSON {
		writeJSON(w, a.json)
		return
	}
	body, err := render(a.template, a.page)
	if err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(body)
}

func render(name string, data any) ([]byte, error) {
	var out bytes.Buffer
	if err := templates().ExecuteTemplate(&out, name+".tmpl", data); err != nil {
		return nil, fmt.Errorf("showing %s: %w", name, err)
	}
	return out.Bytes(), nil
}

func writeJSON(w http.ResponseWriter, v any) {
	body, err := schemas.CanonicalJSON(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n'))
}

// fail answers with an error as plain text.
func (s *Server) fail(w http.ResponseWriter, err error) {
	http.Error(w, visible(err.Error()), statusOf(err))
}

func statusOf(err error) int {
	if errors.Is(err, errNotFound) {
		return http.StatusNotFound
	}
	return http.StatusInternalServerError
}

// errorPage shows why a page cannot be shown.
type errorPage struct {
	page
	Error string
}

// showError answers with a page that shows an error.
func (s *Server) showError(w http.ResponseWriter, err error) {
	body, rerr := render("error", errorPage{s.page("Error", "failure"), err.Error()})
	if rerr != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(statusOf(err))
	_, _ = w.Write(body)
}

func (s *Server) serveVersion(w http.ResponseWriter, r *http.Request) {
	unlock, err := s.refresh(r.Context())
	if err != nil {
		s.fail(w, err)
		return
	}
	defer unlock()
	writeJSON(w, map[string]string{"version": s.version()})
}
