package lab

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/internal/specimen"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// noS3 holds the S3 settings of stores that are directories.
var noS3 configs.S3

// episode returns episode n: one of b.staged with ids of its own. Its long texts differ from
// those of other episodes, so that the dataset stores each of them.
func (b *bulk) episode(n int) (sinks.Staged, error) {
	s, err := sinks.DecodeStaged(b.staged[n%len(b.staged)])
	if err != nil || n < len(b.staged) {
		return s, err
	}
	repo, instance := specimen.Place(n)
	e := &s.Episode
	id := schemas.ShortHash([]any{e.EpisodeID, n})
	e.EpisodeID, e.GroupID, e.InstanceID = id, schemas.ShortHash(instance), instance
	e.Repo, e.SplitGroup, e.Split = repo, &repo, provenance.SplitOf(schemas.Task{Repo: repo, InstanceID: instance}, provenance.Salt)
	e.CreatedAt = e.CreatedAt.Add(time.Duration(n) * time.Minute)
	e.ContentSHA256 = new(schemas.HashBytes([]byte(id)))
	newSHA := map[string]string{}
	for i := range s.Blobs {
		old := s.Blobs[i].SHA256
		s.Blobs[i].Content = id + s.Blobs[i].Content[len(id):]
		s.Blobs[i].SHA256 = schemas.HashBytes([]byte(s.Blobs[i].Content))
		newSHA[old] = s.Blobs[i].SHA256
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		st.EpisodeID, st.Split, st.Repo, st.InstanceID = id, e.Split, e.Repo, e.InstanceID
		if st.ObservationSHA256 != nil && newSHA[*st.ObservationSHA256] != "" {
			st.ObservationSHA256 = new(newSHA[*st.ObservationSHA256])
		}
	}
	return s, nil
}

// resetPeak frees unused memory and resets the peak memory of this process that the kernel
// records.
func resetPeak() error {
	debug.FreeOSMemory()
	return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// memory returns the resident memory of this process in bytes, current and peak.
func memory() (now, peak int64, err error) {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0, fmt.Errorf("reading this process's memory: %w", err)
	}
	field := func(name string) (kib int64) {
		_, rest, _ := bytes.Cut(raw, []byte("\n"+name+":"))
		if _, err := fmt.Sscan(string(rest[:min(len(rest), 40)]), &kib); err != nil {
			return 0
		}
		return kib << 10
	}
	return field("VmRSS"), field("VmHWM"), nil
}
