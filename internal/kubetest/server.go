// Package kubetest is a Kubernetes API server with one node, for tests. It uses the real
// protocols (REST with Status bodies, watches, exec over WebSocket and SPDY), runs
// containers as bubblewrap sandboxes on this machine, and can inject faults.
package kubetest

import (
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Namespace is the only namespace of the server.
const Namespace = "sandboxes"

// Server is the cluster. Its exported fields may be set before the first request.
type Server struct {
	// StartFailure determines the StartFailure of each pod; nil lets all pods run.
	StartFailure func(*corev1.Pod) StartFailure
	// NoPlugin means that network policies are stored but not enforced.
	NoPlugin bool
	// WebSocket lists the subprotocols that the server offers; if empty, it refuses upgrades.
	WebSocket []string
	// Delay is the time that a pod takes to start.
	Delay time.Duration
	// WarningEvent is the message of a warning event that the server reports for every pod; ""
	// means that there are no events.
	WarningEvent string

	t     Test
	http  *httptest.Server
	conns *listener
	token string
	dir   string // volumes

	mu       sync.Mutex
	version  int64
	pods     map[string]*pod
	history  []event
	changed  chan struct{} // closed and replaced at each event
	policies map[string]json.RawMessage
	faults   []*Fault
	calls    map[string]int
	wg       sync.WaitGroup
}

// Test is the test that a server belongs to: a *testing.T or a substitute.
type Test interface {
	Helper()
	Cleanup(func())
	Fatal(...any)
	Error(...any)
	Errorf(string, ...any)
}

// Start starts a server, which is closed at the end of the test.
func Start(t Test) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "kubetest-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // containers run as another user
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		t: t, token: rand.Text(), dir: dir, WebSocket: []string{"v5.channel.k8s.io", "v4.channel.k8s.io"},
		pods: map[string]*pod{}, changed: make(chan struct{}), policies: map[string]json.RawMessage{}, calls: map[string]int{},
	}
	mux := http.NewServeMux()
	base := "/api/v1/namespaces/{ns}/pods"
	mux.HandleFunc("POST "+base, s.handle("create", s.create))
	mux.HandleFunc("GET "+base, s.listOrWatch)
	mux.HandleFunc("GET "+base+"/{name}", s.handle("get", s.get))
	mux.HandleFunc("DELETE "+base+"/{name}", s.handle("delete", s.remove))
	mux.HandleFunc(base+"/{name}/exec", s.handle("exec", s.exec))
	mux.HandleFunc("POST /apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies", s.handle("policy", s.policy))
	mux.HandleFunc("GET /api/v1/namespaces/{ns}/events", s.handle("events", s.events))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource", 0)
	})
	s.http = httptest.NewUnstartedServer(mux)
	s.conns = &listener{Listener: s.http.Listener}
	s.http.Listener = s.conns
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0) // tests cut connections on purpose
	s.http.StartTLS()
	t.Cleanup(s.close)
	return s
}

func (s *Server) close() {
	s.mu.Lock()
	var all []*pod
	for _, p := range s.pods {
		all = append(all, p)
	}
	s.mu.Unlock()
	for _, p := range all {
		s.kill(p)
	}
	s.conns.each(func(c *conn) { c.release(); _ = c.Close() })
	s.http.Close()
	s.wg.Wait()
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Error(err)
	}
}

// Kubeconfig writes a kubeconfig file for the server and returns its path.
func (s *Server) Kubeconfig() string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []any{map[string]any{"name": "test", "cluster": map[string]any{"server": s.http.URL, "certificate-authority-data": ca}}},
		"users":    []any{map[string]any{"name": "test", "user": map[string]any{"token": s.token}}},
		"contexts": []any{map[string]any{"name": "test", "context": map[string]any{"cluster": "test", "user": "test", "namespace": Namespace}}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	name := filepath.Join(s.dir, "kubeconfig")
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return name
}

// handle checks token and namespace, and lets a fault answer instead of serve.
func (s *Server) handle(verb string, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+s.token {
			fail(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized", 0)
			return
		}
		if r.PathValue("ns") != Namespace {
			fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("namespaces %q not found", r.PathValue("ns")), 0)
			return
		}
		if s.count(verb).answer(w, serve, r) {
			return
		}
		serve(w, r)
	}
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	p := &pod{server: s, ended: make(chan struct{}), killed: make(chan struct{})}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&p.Pod); err != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), 0)
		return
	}
	s.mu.Lock()
	if s.pods[p.Name] != nil {
		s.mu.Unlock()
		fail(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, fmt.Sprintf("pods %q already exists", p.Name), 0)
		return
	}
	p.Namespace, p.UID, p.CreationTimestamp = Namespace, types.UID(rand.Text()), metav1.Now()
	p.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	p.Status.Phase = corev1.PodPending
	s.pods[p.Name] = p
	s.record("ADDED", p)
	made := p.Pod.DeepCopy()
	s.mu.Unlock()
	s.wg.Go(p.runToEnd)
	answer(w, http.StatusCreated, made)
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[r.PathValue("name")]
	if p == nil {
		missing(w, r)
		return
	}
	answer(w, http.StatusOK, &p.Pod)
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request) {
	var opts metav1.DeleteOptions
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&opts); err != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), 0)
		return
	}
	s.mu.Lock()
	p := s.pods[r.PathValue("name")]
	s.mu.Unlock()
	if p == nil {
		missing(w, r)
		return
	}
	if c := opts.Preconditions; c != nil && c.UID != nil && *c.UID != p.UID {
		fail(w, http.StatusConflict, metav1.StatusReasonConflict, "the UID in the precondition does not match", 0)
		return
	}
	s.kill(p)
	answer(w, http.StatusOK, &p.Pod)
}

// Pods returns the current pods.
func (s *Server) Pods() []corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []corev1.Pod
	for _, p := range s.pods {
		out = append(out, *p.Pod.DeepCopy())
	}
	return out
}

// AddPod adds a pod without running it, like a pod that an earlier run left behind.
func (s *Server) AddPod(p corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.Namespace, p.UID = Namespace, types.UID(rand.Text())
	made := &pod{server: s, Pod: p, ended: make(chan struct{}), killed: make(chan struct{})}
	close(made.ended)
	s.pods[p.Name] = made
	s.record("ADDED", made)
}

func (s *Server) policy(w http.ResponseWriter, r *http.Request) {
	var named struct{ Metadata metav1.ObjectMeta }
	var raw json.RawMessage
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&raw)
	if err == nil {
		err = json.Unmarshal(raw, &named)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), 0)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.policies[named.Metadata.Name] != nil {
		fail(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, "networkpolicies already exists", 0)
		return
	}
	s.policies[named.Metadata.Name] = raw
	answer(w, http.StatusCreated, raw)
}

func (s *Server) events(w http.ResponseWriter, _ *http.Request) {
	list := corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}}
	if s.WarningEvent != "" {
		list.Items = []corev1.Event{{Type: corev1.EventTypeWarning, Reason: "FailedCreatePodSandBox", Message: s.WarningEvent, LastTimestamp: metav1.Now()}}
	}
	answer(w, http.StatusOK, list)
}

// noNetwork reports whether a pod has no network: a policy denies all traffic in both
// directions, and the plugin enforces it.
func (s *Server) noNetwork(p *pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, raw := range s.policies {
		var policy networkingv1.NetworkPolicy
		if err := json.Unmarshal(raw, &policy); err != nil {
			continue
		}
		if types := policy.Spec.PolicyTypes; len(policy.Spec.Egress)+len(policy.Spec.Ingress) > 0 ||
			!slices.Contains(types, networkingv1.PolicyTypeEgress) || !slices.Contains(types, networkingv1.PolicyTypeIngress) {
			continue
		}
		if sel, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector); err == nil && sel.Matches(labels.Set(p.Labels)) {
			return !s.NoPlugin
		}
	}
	return false
}

func (s *Server) address() (host, port string) {
	host, port, _ = net.SplitHostPort(s.http.Listener.Addr().String())
	return host, port
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

// fail answers with a Status, as the API machinery does.
func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, message string, retryAfter int) {
	st := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message,
	}
	if retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		st.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(retryAfter)}
	}
	answer(w, code, st)
}

func missing(w http.ResponseWriter, r *http.Request) {
	fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("pods %q not found", r.PathValue("name")), 0)
}
