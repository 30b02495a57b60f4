// Package cassettes records what goes between clients and a model server, and
// plays it back. A cassette is a file of JSON lines, one per exchange, one file
// per session; a line is written at once when its exchange has ended, so a
// recorder that is killed loses at most what was under way.
package cassettes

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
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
)

// Exchange is one line of a cassette.
type Exchange struct {
	Version int             `json:"v"`
	At      string          `json:"at"` // when it began, RFC 3339 in UTC
	Session string          `json:"session"`
	Method  string          `json:"method"`
	Path    string          `json:"path"` // with its query
	Hash    string          `json:"hash"` // of the request without what is volatile; see HashRequest
	Request json.RawMessage `json:"request,omitempty"`
	Status  int             `json:"status"`
	Headers http.Header     `json:"headers,omitempty"` // of the answer
	Chunks  []Chunk         `json:"chunks,omitempty"`
	// End is how the answer ended: "" whole, cut, or left (the client went).
	End string `json:"end,omitempty"`
}

// Chunk is what one read of the answer gave. Exactly one of Text and Bytes (no
// UTF-8) is set.
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

// maxLine bounds one exchange, of a request and of an answer together.
const maxLine = 192 << 20

// Cut tells that a cassette could be read up to some line only.
type Cut struct {
	File string
	Line int // the first line that is not whole
	Read int // exchanges before it
}

func (c Cut) String() string {
	return fmt.Sprintf("%s:%d is damaged or cut: the %d exchanges before it are used", c.File, c.Line, c.Read)
}

// Read returns the exchanges of one cassette. A line that is not whole ends it:
// what stands before is returned with where it was cut.
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
			return nil, nil, fmt.Errorf("cassette %s:%d is of version %d, this program reads version %d: record it again", name, line, ex.Version, version)
		}
		out = append(out, ex)
	}
}

var errLong = errors.New("the line is too long")

// readLine returns a line without its end; io.EOF for one that has none.
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

// Load reads all cassettes of a directory, by session.
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

// shelf is a directory of cassettes that are written. Safe for concurrent use.
type shelf struct {
	dir string
	mu  sync.Mutex
}

// add appends an exchange to its session's cassette, in one write.
func (s *shelf) add(ex Exchange) error {
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
	end, err := wholeEnd(f)
	if err == nil {
		err = f.Truncate(end) // what a killed recorder has left half
	}
	if err == nil {
		_, err = f.WriteAt(append(line, '\n'), end)
	}
	if err != nil {
		return fmt.Errorf("writing cassette: %w", err)
	}
	return nil
}

// wholeEnd is where the last whole line of a file ends.
func wholeEnd(f *os.File) (int64, error) {
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

var unfit = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// fileName is a session's file; what a name cannot hold is replaced, and a hash
// keeps two sessions apart.
func fileName(session string) string {
	name := unfit.ReplaceAllString(session, "_")
	if name != session || len(name) > 100 {
		name = name[:min(len(name), 80)] + "-" + digest([]byte(session))[:12]
	}
	return name + ".jsonl"
}

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// volatile fields of a request say nothing about its meaning.
var volatile = []string{"user", "metadata", "safety_identifier", "prompt_cache_key", "service_tier"}

// HashRequest is the normalised hash: method, path, and the body with sorted
// keys and without volatile fields.
func HashRequest(method, path string, body []byte) string {
	var doc any
	if json.Unmarshal(body, &doc) == nil {
		if top, ok := doc.(map[string]any); ok {
			for _, name := range volatile {
				delete(top, name)
			}
		}
		if sorted, err := json.Marshal(doc); err == nil {
			body = sorted
		}
	}
	return digest(slices.Concat([]byte(method+" "+path+"\n"), body))
}

// Other is the session of requests that belong to no conversation.
const Other = "other"

// sessionOf names the conversation of a request: its X-Session-ID, or how the
// conversation begins.
func sessionOf(h http.Header, body []byte) string {
	if id := h.Get("X-Session-ID"); id != "" {
		return id
	}
	begin := []json.RawMessage{}
	for _, m := range messagesOf(body) {
		var of struct {
			Role string `json:"role"`
		}
		if json.Unmarshal(m, &of) == nil && of.Role == "assistant" {
			break
		}
		begin = append(begin, m)
	}
	if len(begin) == 0 {
		return Other
	}
	raw, err := json.Marshal(begin)
	if err != nil {
		return Other
	}
	return "begins-" + digest(raw)[:16]
}

// messagesOf are a request's messages, the system prompt of the Messages API
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

// secrets are values that must not be written anywhere.
type secrets struct {
	mu     sync.Mutex
	values []string
}

// secretHeader is the name of a header that carries a secret; what it holds is
// looked for in everything else.
var secretHeader = regexp.MustCompile(`(?i)auth|key|token|secret|password|cookie`)

// schemes stand before a secret.
var schemes = []string{"Bearer ", "Basic ", "bearer ", "basic "}

// minSecret is how long a value must be to be looked for: shorter ones would
// tear words apart.
const minSecret = 6

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

// add remembers values, and how JSON and URLs would write them.
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

// mask replaces every secret by as many stars, in place, so that chunks keep
// their bounds.
func (s *secrets) mask(raw []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.values {
		stars := bytes.Repeat([]byte("*"), len(v))
		raw = bytes.ReplaceAll(raw, []byte(v), stars)
	}
	return raw
}
