package publish_test

import (
	"context"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/stores"
)

func bucket(t *testing.T, url string) sinks.Store {
	t.Helper()
	s, err := stores.Open(t.Context(), "s3://"+sinktest.Bucket+"/team/traces", stores.S3Config{Endpoint: url})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func objects(t *testing.T, s sinks.Store) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for o, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		out[o.Key] = o.Size
	}
	return out
}

func TestS3PublishToS3(t *testing.T) {
	for name, url := range map[string]func(t *testing.T) string{
		"fake":   func(t *testing.T) string { return sinktest.Fake(t, nil) },
		"server": func(t *testing.T) string { return sinktest.Serve(t).URL },
	} {
		t.Run(name, func(t *testing.T) {
			dest := bucket(t, url(t))
			staging := stage(t, "run", 0, 4)
			rep := run(t, config(t, dest, staging))
			wantDataset(t, dest, golden("run", 4)...)
			if again := run(t, config(t, dest, staging)); !again.AlreadyPublished || again.Version != rep.Version {
				t.Errorf("repeat = %+v", again)
			}
		})
	}
}

// beforeManifest calls a function before the manifest is written.
type beforeManifest struct {
	sinks.Store
	call func()
}

func (a beforeManifest) Create(ctx context.Context, key string, body []byte) error {
	if path.Base(key) == "manifest.json" {
		a.call()
	}
	return a.Store.Create(ctx, key, body)
}

func TestS3ServerKilledBetweenDataAndManifest(t *testing.T) {
	srv := sinktest.Serve(t)
	dest := bucket(t, srv.URL)
	staging := stage(t, "run", 0, 3)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg := config(t, beforeManifest{dest, func() { srv.Kill(); cancel() }}, staging)
	if _, err := publish.Publish(ctx, cfg); err == nil {
		t.Fatal("publishing to a dead server succeeded")
	}
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	expire(t, dest)
	want := objects(t, dest)
	if _, err := publish.Open(t.Context(), dest); err == nil {
		t.Error("a dataset without a manifest can be opened")
	}
	rep := run(t, config(t, dest, staging))
	if rep.AlreadyPublished || rep.Uploaded != 0 {
		t.Errorf("repeat = %+v, want no data file uploaded again", rep)
	}
	wantDataset(t, dest, golden("run", 3)...)
	now := objects(t, dest)
	want[".versions/"+rep.Version+"/manifest.json"] = now[".versions/"+rep.Version+"/manifest.json"]
	want["lease.json"] = now["lease.json"] // released
	want["latest.json"] = now["latest.json"]
	for key := range now {
		if !strings.HasPrefix(key, ".versions/") { // the root is written after the manifest
			want[key] = now[key]
		}
	}
	if diff := cmp.Diff(want, now); diff != "" {
		t.Error(diff)
	}
}
