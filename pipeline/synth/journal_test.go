package synth

import (
	"errors"
	"strings"
	"testing"
)

// Two processes that write the same journal would damage it. The first may be a run that was interrupted and still ends.
func TestJournalHasOneWriter(t *testing.T) {
	dir := t.TempDir()
	first, err := openJournal(dir, settings{})
	if err != nil {
		t.Fatal(err)
	}
	var refused *OutputDirError
	if _, err := openJournal(dir, settings{}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second writer gets %v", err)
	}
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	second, err := openJournal(dir, settings{})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.close(); err != nil {
		t.Fatal(err)
	}
}
