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

// noS3 serves for directories.
var noS3 configs.S3

// episode returns episode n: a normalised one under other ids. Its long texts differ
// from those of others, so that each is stored.
func (b *bulk) episode(n int) (sinks.Staged, error) {
	s, err := sinks.DecodeStaged(b.made[n%len(b.made)])
	if err != nil || n < len(b.made) {
		return s, err
	}
	repo, instance := specimen.Place(n)
	e := &s.Episode
	id := schemas.ShortHash([]any{e.EpisodeID, n})
	e.EpisodeID, e.GroupID, e.InstanceID = id, schemas.ShortHash(instance), instance
	e.Repo, e.SplitGroup, e.Split = repo, &repo, provenance.SplitOf(schemas.Task{Repo: repo, InstanceID: instance}, provenance.Salt)
	e.CreatedAt = e.CreatedAt.Add(time.Duration(n) * time.Minute)
	e.ContentSHA256 = new(schemas.HashBytes([]byte(id)))
	renamed := map[string]string{}
	for i := range s.Blobs {
		old := s.Blobs[i].SHA256
		s.Blobs[i].Content = id + s.Blobs[i].Content[len(id):]
		s.Blobs[i].SHA256 = schemas.HashBytes([]byte(s.Blobs[i].Content))
		renamed[old] = s.Blobs[i].SHA256
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		st.EpisodeID, st.Split, st.Repo, st.InstanceID = id, e.Split, e.Repo, e.InstanceID
		if st.ObservationSHA256 != nil && renamed[*st.ObservationSHA256] != "" {
			st.ObservationSHA256 = new(renamed[*st.ObservationSHA256])
		}
	}
	return s, nil
}

// resetPeak frees unused memory and resets the kernel's peak of this process.
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
