// Package tape records the requests to model servers and their responses byte for byte,
// except for secrets, in one file per episode that is private to the run. A request is
// stored as its difference from an earlier one, so the size of a file is proportional to the
// last request rather than to the sum of all.
//
// A file is a list of records. A record is one line of JSON (recordHeader), followed by the new part
// of the request and the response, each as a zstd frame. Records are only appended. If a
// killed process leaves an incomplete last record, the next record overwrites it.
package tape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// Path returns the path of an episode's tape in a run directory.
func Path(runDir, episodeID string) string {
	return filepath.Join(runDir, "wire", episodeID[:min(2, len(episodeID))], episodeID+".tape")
}

// recordHeader is the first line of a record. Request and Response are the SHA-256 hashes of the
// complete bodies in hexadecimal.
type recordHeader struct {
	At       time.Time `json:"at"`
	Request  string    `json:"request"`
	Response string    `json:"response,omitempty"`
	Status   int       `json:"status,omitempty"`
	Failure  string    `json:"failure,omitempty"`
	// Base is the number of the record whose request has the same beginning and end as this
	// one, or -1 if there is none. Prefix and Suffix are the lengths of these parts in bytes.
	Base   int `json:"base"`
	Prefix int `json:"prefix,omitempty"`
	Suffix int `json:"suffix,omitempty"`
	// NewBytes and ResponseBytes are the lengths of the frames; 0 if there is no frame.
	NewBytes      int `json:"new_bytes,omitempty"`
	ResponseBytes int `json:"response_bytes,omitempty"`
	// KeptRequest and KeptResponse are the hashes of the stored bodies if secrets were
	// replaced in them.
	KeptRequest  string `json:"kept_request,omitempty"`
	KeptResponse string `json:"kept_response,omitempty"`
	// SameResponse is true if the response is the same as that of the previous record.
	SameResponse bool `json:"same_response,omitempty"`
}

// Writer is an llms.Tape that writes to a file.
type Writer struct {
	path  string
	clean func(string) string

	mu      sync.Mutex
	file    *os.File // nil before the first Record
	size    int64
	records int
	recent  recent
	last    string // hash of the last response
}

// New returns the tape of one episode. The first Record opens the file, or creates it. clean
// replaces secrets in each body before it is written; nil means that bodies are not changed.
func New(path string, clean func(string) string) *Writer {
	if clean == nil {
		clean = func(s string) string { return s }
	}
	return &Writer{path: path, clean: clean}
}

// Record implements llms.Tape. If it fails, it removes the incomplete record.
func (w *Writer) Record(ex llms.Exchange) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	h := recordHeader{At: ex.At, Request: schemas.HashBytes(ex.Request), Status: ex.Status, Failure: ex.Failure}
	if ex.Response != nil {
		h.Response = schemas.HashBytes(ex.Response)
	}
	ex.Request, h.KeptRequest = w.redact(ex.Request)
	ex.Response, h.KeptResponse = w.redact(ex.Response)
	var part []byte
	h.Base, h.Prefix, h.Suffix, part = w.recent.diff(ex.Request)
	newPart, response := compress(part), []byte(nil)
	if ex.Response != nil {
		if h.SameResponse = h.Response == w.last; !h.SameResponse {
			response = compress(ex.Response)
		}
	}
	h.NewBytes, h.ResponseBytes = len(newPart), len(response)
	line, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("encoding the record of a model call: %w", err)
	}
	record := bytes.Join([][]byte{line, []byte("\n"), newPart, response, []byte("\n")}, nil)
	if _, err := w.file.WriteAt(record, w.size); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", w.path, err), w.file.Truncate(w.size))
	}
	w.size += int64(len(record))
	w.recent.add(w.records, ex.Request)
	w.records++
	w.last = h.Response
	return nil
}

// redact returns the body without secrets, and the hash of the result if there were any secrets.
func (w *Writer) redact(body []byte) ([]byte, string) {
	text := string(body)
	if clean := w.clean(text); clean != text {
		return []byte(clean), schemas.HashBytes([]byte(clean))
	}
	return body, ""
}

// open opens the file and truncates it after the last complete record.
func (w *Writer) open() error {
	if err := os.MkdirAll(filepath.Dir(w.path), 0o700); err != nil {
		return fmt.Errorf("making the directory for records of model calls: %w", err)
	}
	f, err := os.OpenFile(w.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("opening the record of model calls: %w", err)
	}
	r := newReader(f)
	for err == nil {
		_, err = r.next()
	}
	if !errors.Is(err, errEnd) {
		return errors.Join(fmt.Errorf("reading %s (move it away to continue without it): %w", w.path, err), f.Close())
	}
	if err := f.Truncate(r.end); err != nil {
		return errors.Join(fmt.Errorf("repairing %s: %w", w.path, err), f.Close())
	}
	w.file, w.size, w.records, w.recent, w.last = f, r.end, r.records, r.recent, r.lastHash
	return nil
}

// Close closes the file.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}

// Read returns the exchanges of a file for which match returns true, oldest first. It
// returns none if there is no file. It ignores an incomplete last record; a damaged record
// is an error.
func Read(path string, match func(requestSHA256 string) bool) ([]llms.Exchange, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the record of model calls: %w", err)
	}
	defer f.Close()
	var out []llms.Exchange
	r := newReader(f)
	for {
		h, err := r.next()
		if errors.Is(err, errEnd) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if match(h.Request) {
			out = append(out, llms.Exchange{At: h.At, Request: r.request, Response: r.response, Status: h.Status, Failure: h.Failure})
		}
	}
}
