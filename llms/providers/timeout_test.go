package providers

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The message of a check that ended after 30 seconds does not name the longer time limit of calls.
func TestTimeoutOfACheckNamesItsOwnLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := endpoint{timeout: 5 * time.Minute}
		ctx, cancel := e.checkContext(t.Context())
		defer cancel()
		<-ctx.Done()
		if err := e.transportError(t.Context(), ctx, &exchange{}, ctx.Err()); !strings.Contains(err.Error(), "no answer within 30s") {
			t.Error(err)
		}
	})
}
