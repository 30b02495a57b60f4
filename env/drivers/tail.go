package drivers

import (
	"bytes"
	"strings"
	"sync"
)

// Tail keeps the last 4 KiB written to it. The zero value is ready to use. Safe for concurrent use.
type Tail struct {
	mu  sync.Mutex
	buf []byte
}

// Write implements io.Writer. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - 4096; over > 0 {
		t.buf = bytes.Clone(t.buf[over:])
	}
	return len(p), nil
}

// String returns the kept text as valid UTF-8, without surrounding space.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(strings.TrimSpace(string(t.buf)), "?")
}
