package kubetest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// The channels of the remote command protocol over WebSocket. The first byte of each
// message is its channel.
const (
	channelIn = iota
	channelOut
	channelErr
	channelStatus
	channelClose = 255 // since v5: the next byte is the channel to close
)

// streams holds the streams of one exec, over either protocol.
type streams struct {
	in          io.Reader
	out, errOut io.Writer
	status      io.Writer
	close       func() // closes the whole connection
}

func (s *Server) exec(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	p := s.pods[r.PathValue("name")]
	var c *container
	if p != nil {
		c = p.containers[q.Get("container")]
	}
	s.mu.Unlock()
	if p == nil {
		missing(w, r)
		return
	}
	if c == nil {
		fail(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "container not found", 0)
		return
	}
	var st *streams
	var err error
	if websocket.IsWebSocketUpgrade(r) {
		st, err = s.overWebSocket(w, r)
	} else {
		st, err = s.overSPDY(w, r)
	}
	if err != nil {
		return // the failed upgrade has sent an answer
	}
	defer st.close()
	_ = json.NewEncoder(st.status).Encode(perform(c.enter(q["command"]), st))
}

// perform runs a command on the streams and returns its status.
func perform(cmd *exec.Cmd, st *streams) metav1.Status {
	if st.out != nil {
		cmd.Stdout = st.out
	}
	if st.errOut != nil {
		cmd.Stderr = st.errOut
	}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		go func() { // ends with the connection
			if st.in != nil {
				_, _ = io.Copy(in, st.in)
			}
			_ = in.Close()
		}()
		err = cmd.Wait()
	}
	out := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code := exit.ExitCode()
		if code < 0 {
			code = 128 + 9
		}
		out.Status, out.Reason, out.Message = metav1.StatusFailure, "NonZeroExitCode", "command terminated with non-zero exit code"
		out.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ExitCode", Message: strconv.Itoa(code)}}}
	} else if err != nil {
		out.Status, out.Reason, out.Message = metav1.StatusFailure, metav1.StatusReasonInternalError, err.Error()
	}
	return out
}

func (s *Server) overWebSocket(w http.ResponseWriter, r *http.Request) (*streams, error) {
	up := websocket.Upgrader{Subprotocols: s.WebSocket, CheckOrigin: func(*http.Request) bool { return true }}
	common := false
	for _, offered := range websocket.Subprotocols(r) {
		for _, known := range s.WebSocket {
			common = common || offered == known
		}
	}
	if !common {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "unable to upgrade: no common protocol", 0)
		return nil, errors.New("no common protocol")
	}
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return nil, err
	}
	s.countProtocol(ws.Subprotocol())
	in, toIn := io.Pipe()
	go func() { // ends with the connection
		defer toIn.Close()
		for {
			_, msg, err := ws.ReadMessage()
			switch {
			case err != nil || len(msg) == 0:
				return
			case msg[0] == channelIn:
				_, _ = toIn.Write(msg[1:])
			case msg[0] == channelClose && len(msg) > 1 && msg[1] == channelIn && ws.Subprotocol() == "v5.channel.k8s.io":
				_ = toIn.Close()
			}
		}
	}()
	var mu sync.Mutex
	channel := func(id byte) io.Writer {
		return writer(func(p []byte) error {
			mu.Lock()
			defer mu.Unlock()
			return ws.WriteMessage(websocket.BinaryMessage, append([]byte{id}, p...))
		})
	}
	q := r.URL.Query()
	st := &streams{status: channel(channelStatus), close: func() {
		mu.Lock()
		defer mu.Unlock()
		_ = ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
		_ = ws.Close()
		_ = in.Close()
	}}
	if q.Get("stdin") == "true" {
		st.in = in
	}
	if q.Get("stdout") == "true" {
		st.out = channel(channelOut)
	}
	if q.Get("stderr") == "true" {
		st.errOut = channel(channelErr)
	}
	return st, nil
}

type writer func([]byte) error

func (w writer) Write(p []byte) (int, error) { return len(p), w(p) }

func (s *Server) overSPDY(w http.ResponseWriter, r *http.Request) (*streams, error) {
	protocol, err := httpstream.Handshake(r, w, []string{"v4.channel.k8s.io"})
	if err != nil {
		return nil, err
	}
	type named struct {
		httpstream.Stream
		sent <-chan struct{}
	}
	arrived := make(chan named, 8)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(st httpstream.Stream, sent <-chan struct{}) error {
		arrived <- named{st, sent}
		return nil
	})
	if conn == nil {
		return nil, errors.New("not upgraded")
	}
	s.countProtocol("spdy " + protocol)
	q := r.URL.Query()
	want := 1
	for _, name := range []string{"stdin", "stdout", "stderr"} {
		if q.Get(name) == "true" {
			want++
		}
	}
	st := &streams{close: func() { _ = conn.Close() }}
	for range want {
		select {
		case stream := <-arrived:
			<-stream.sent
			switch stream.Headers().Get(corev1.StreamType) {
			case corev1.StreamTypeStdin:
				st.in = stream.Stream
			case corev1.StreamTypeStdout:
				st.out = stream.Stream
			case corev1.StreamTypeStderr:
				st.errOut = stream.Stream
			case corev1.StreamTypeError:
				st.status = stream.Stream
			}
		case <-conn.CloseChan():
			return nil, errors.New("connection closed")
		case <-time.After(30 * time.Second):
			_ = conn.Close()
			return nil, errors.New("streams are missing")
		}
	}
	return st, nil
}

// countProtocol counts an exec by its protocol; see Calls.
func (s *Server) countProtocol(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[name]++
}
