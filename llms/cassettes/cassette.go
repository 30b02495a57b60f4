// Package cassettes records the exchanges between clients and a model server, and plays
// them back. A cassette is a file with the exchanges of one session as JSON lines. A line is
// written when its exchange has ended, so a recorder that is killed loses only the exchanges
// that have not ended.
package cassettes

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tracesmith/tracesmith/schemas"
)

// Exchange is one line of a cassette.
type Exchange struct {
	Version int             `json:"v"`
	At      string          `json:"at"` // when it began, RFC 3339 in UTC
	Session string          `json:"session"`
	Method  string          `json:"method"`
	Path    string          `json:"path"` // with its query
	Hash    string          `json:"hash"` // see HashRequest
	Request json.RawMessage `json:"request,omitempty"`
	Status  int             `json:"status"`
	Headers http.Header     `json:"headers,omitempty"` // of the answer
	Chunks  []Chunk         `json:"chunks,omitempty"`
	// End says how the answer ended: "" (complete), answerCut or clientLeft.
	End string `json:"end,omitempty"`
}

const (
	answerCut  = "cut"  // the upstream broke off the answer
	clientLeft = "left" // the client disconnected
)

// Chunk is the result of one read of the answer: Text, or Bytes if it is not valid UTF-8.
type Chunk struct {
	Millis int64  `json:"ms"` // since the exchange began
	Text   string `json:"text,omitempty"`
	Bytes  []byte `json:"bytes,omitempty"`
}

func (c Chunk) data() []byte {
	if c.Bytes != nil {
		return c.Bytes
	}
	return []byte(c.Text)
}

const version = 1

// maxLine limits one exchange, request and answer together, in bytes.
const maxLine = 192 << 20

// Cut describes a cassette that is damaged or incomplete from a line on.
type Cut struct {
	File string
	Line int // the first damaged line
	Read int // exchanges before it
}

func (c Cut) String() string {
	return fmt.Sprintf("%s:%d is damaged or cut: the %d exchanges before it are used", c.File, c.Line, c.Read)
}

// Read returns the exchanges of one cassette. At a damaged line, it returns the exchanges
// before it and a Cut.
func Read(name string, r io.Reader) ([]Exchange, *Cut, error) {
	var out []Exchange
	in := bufio.NewReaderSize(r, 64<<10)
	for line := 1; ; line++ {
		raw, err := readLine(in)
		switch {
		case errors.Is(err, io.EOF) && len(raw) == 0:
			return out, nil, nil
		case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errLong):
			return nil, nil, fmt.Errorf("reading cassette %s: %w", name, err)
		}
		var ex Exchange
		if err != nil || json.Unmarshal(raw, &ex) != nil || ex.Method == "" || ex.Hash == "" {
			return out, &Cut{File: name, Line: line, Read: len(out)}, nil
		}
		if ex.Version != version {
			return nil, nil, fmt.Errorf("cassette %s:%d has version %d, but this program reads version %d: record it again", name, line, ex.Version, version)
		}
		out = append(out, ex)
	}
}

var errLong = errors.New("the line is too long")

// readLine returns a line without its newline, with io.EOF if it has none.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, errLong
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return bytes.TrimSuffix(line, []byte("\n")), err
	}
}

// Load reads all cassettes of a directory and returns the exchanges by session.
func Load(dir string) (map[string][]Exchange, []Cut, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		return nil, nil, fmt.Errorf("no cassettes (*.jsonl) in %s: make some with tracesmith record", dir)
	}
	out := map[string][]Exchange{}
	var cuts []Cut
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, nil, fmt.Errorf("opening cassette: %w", err)
		}
		list, cut, err := Read(name, f)
		_ = f.Close()
		if err != nil {
			return nil, nil, err
		}
		if cut != nil {
			cuts = append(cuts, *cut)
		}
		for _, ex := range list {
			out[ex.Session] = append(out[ex.Session], ex)
		}
	}
	return out, cuts, nil
}

// writer writes cassettes to a directory. It is safe for concurrent use.
type writer struct {
	dir string
	mu  sync.Mutex
}

// add appends an exchange to its session's cassette, in one write.
func (s *writer) add(ex Exchange) error {
	line, err := json.Marshal(ex)
	if err != nil {
		return fmt.Errorf("encoding exchange: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := os.OpenFile(filepath.Join(s.dir, fileName(ex.Session)), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("opening cassette: %w", err)
	}
	defer f.Close()
	end, err := endOfLines(f)
	if err == nil {
		err = f.Truncate(end) // removes the incomplete line of a killed recorder
	}
	if err == nil {
		_, err = f.WriteAt(append(line, '\n'), end)
	}
	if err != nil {
		return fmt.Errorf("writing cassette: %w", err)
	}
	return nil
}

// endOfLines returns the offset of the end of a file's last complete line.
func endOfLines(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 4096)
	for end := info.Size(); end > 0; {
		from := max(0, end-int64(len(buf)))
		part := buf[:end-from]
		if _, err := f.ReadAt(part, from); err != nil {
			return 0, err
		}
		if n := bytes.LastIndexByte(part, '\n'); n >= 0 {
			return from + int64(n) + 1, nil
		}
		end = from
	}
	return 0, nil
}

var invalidFileNameChars = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// fileName returns the name of a session's file. If it replaces characters or shortens the
// name, it appends a hash of the session.
func fileName(session string) string {
	name := invalidFileNameChars.ReplaceAllString(session, "_")
	if name != session || len(name) > 100 {
		name = name[:min(len(name), 80)] + "-" + schemas.HashBytes([]byte(session))[:12]
	}
	return name + ".jsonl"
}

// volatileFields lists the fields of a request that do not affect the answer.
var volatileFields = []string{"user", "metadata", "safety_identifier", "prompt_cache_key", "service_tier"}

// HashRequest returns a hash of method, path, and the body with sorted keys and without
// volatile fields.
func HashRequest(method, path string, body []byte) string {
	var doc any
	if json.Unmarshal(body, &doc) == nil {
		if top, ok := doc.(map[string]any); ok {
			for _, name := range volatileFields {
				delete(top, name)
			}
		}
		if sorted, err := json.Marshal(doc); err == nil {
			body = sorted
		}
	}
	return schemas.HashBytes(slices.Concat([]byte(method+" "+path+"\n"), body))
}

// Other is the session of requests that do not belong to a conversation.
const Other = "other"

// sessionOf returns the session of a request: its X-Session-ID, or a hash of the messages
// before the first answer.
func sessionOf(h http.Header, body []byte) string {
	if id := h.Get("X-Session-ID"); id != "" {
		return id
	}
	prefix := []json.RawMessage{}
	for _, m := range messagesOf(body) {
		var message struct {
			Role string `json:"role"`
		}
		if json.Unmarshal(m, &message) == nil && message.Role == "assistant" {
			break
		}
		prefix = append(prefix, m)
	}
	if len(prefix) == 0 {
		return Other
	}
	raw, err := json.Marshal(prefix)
	if err != nil {
		return Other
	}
	return "begins-" + schemas.HashBytes(raw)[:16]
}

// messagesOf returns a request's messages. The system prompt of the Messages API comes
// first.
func messagesOf(body []byte) []json.RawMessage {
	var doc struct {
		System   json.RawMessage   `json:"system"`
		Messages []json.RawMessage `json:"messages"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return nil
	}
	if len(doc.System) > 0 {
		return append([]json.RawMessage{doc.System}, doc.Messages...)
	}
	return doc.Messages
}

// secrets holds values that must not be written. It is safe for concurrent use.
type secrets struct {
	mu     sync.Mutex
	values []string
}

// secretHeader matches names of headers and query parameters whose values are secrets.
var secretHeader = regexp.MustCompile(`(?i)auth|key|token|secret|password|cookie`)

// schemes lists what may precede the secret in a header.
var schemes = []string{"Bearer ", "Basic ", "bearer ", "basic "}

// minSecret is the minimum length of a secret. Masking shorter values would damage ordinary
// words.
const minSecret = 6

// learn adds the secrets in the headers, cookies and query of a request.
func (s *secrets) learn(r *http.Request) {
	for name, values := range r.Header {
		if !secretHeader.MatchString(name) {
			continue
		}
		for _, value := range values {
			for _, scheme := range schemes {
				value = strings.TrimPrefix(value, scheme)
			}
			s.add(value)
		}
	}
	for _, c := range r.Cookies() {
		s.add(c.Value)
	}
	for name, values := range r.URL.Query() {
		if secretHeader.MatchString(name) {
			s.add(values...)
		}
	}
}

// add adds values and their encodings in JSON and URLs.
func (s *secrets) add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		quoted, err := json.Marshal(v)
		if err != nil {
			continue
		}
		for _, form := range []string{v, strings.Trim(string(quoted), `"`), url.QueryEscape(v), strings.ReplaceAll(v, "/", `\/`)} {
			if len(form) >= minSecret && !slices.Contains(s.values, form) {
				s.values = append(s.values, form)
			}
		}
	}
	slices.SortFunc(s.values, func(a, b string) int { return len(b) - len(a) })
}

// mask replaces the bytes of every secret by asterisks. The length stays the same, so that
// the bounds of chunks stay valid.
func (s *secrets) mask(raw []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.values {
		stars := bytes.Repeat([]byte("*"), len(v))
		raw = bytes.ReplaceAll(raw, []byte(v), stars)
	}
	return raw
}
