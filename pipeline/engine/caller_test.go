package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// If the disk is full, an answer with status 500 becomes a *DiskFullError, because the
// server's own message varies. An answer such as 404 does not.
func TestFullDisksAreRecognized(t *testing.T) {
	t.Parallel()
	full := func(cause error) error { return &DiskFullError{Dir: "run/engine", Floor: 1 << 20, Err: cause} }
	for want, err := range map[bool]error{
		true:  &jetstream.APIError{Code: 500, ErrorCode: 10051, Description: "write 1.blk: no space left on device"},
		false: &jetstream.APIError{Code: 404, ErrorCode: 10059, Description: "stream not found"},
	} {
		got := caller{timeout: time.Minute, diskFull: full}.call(t.Context(), "purging", func(context.Context) error { return err })
		if _, is := errors.AsType[*DiskFullError](got); is != want || !errors.Is(got, err) {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}

// The embedded server may be silent for minutes while the disk is busy, and a run then goes on.
func TestSilentServerIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silence := time.After(4 * time.Minute)
		err := (&Engine{opt: Options{}.withDefaults()}).embeddedCaller().call(t.Context(), "listing records", func(ctx context.Context) error {
			select {
			case <-silence:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
}
