package wire

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Image is a container image that tasks run in, with the result of its pull.
type Image struct {
	Name    string  `json:"image"`
	Tasks   int     `json:"tasks"`  // that name it
	Status  string  `json:"status"` // ImageThere, ImagePulled, ImageFailed, ImageLeft
	Reason  string  `json:"reason,omitempty"`
	Seconds float64 `json:"seconds"`

	kind string // of the sandbox
}

// Values of Image.Status.
const (
	ImageThere  = "there"  // it was there before
	ImagePulled = "pulled" // it was pulled now
	ImageFailed = "failed"
	ImageLeft   = "left" // Pull was stopped before it
)

// Images lists the images that tasks run in, each once, in the order of the tasks.
func (w *Workbench) Images(tasks []schemas.Task) (list []Image, err error) {
	for _, t := range tasks {
		kind, name := w.kind(t), cmp.Or(w.cfg.Sandbox.Image, t.Image)
		if name == "" || kind == "bubblewrap" || kind == "local" {
			continue
		}
		if _, can := w.drivers[kind].(env.Puller); !can {
			return nil, fmt.Errorf("sandbox %s pulls images only when it starts: prepull cannot pull them", kind)
		}
		at := slices.IndexFunc(list, func(i Image) bool { return i.Name == name && i.kind == kind })
		if at < 0 {
			list, at = append(list, Image{Name: name, Status: ImageLeft, kind: kind}), len(list)
		}
		list[at].Tasks++
	}
	return list, nil
}

// PullProgress receives the progress of Pull, one call at a time.
type PullProgress struct {
	Begun func(Image)
	Bytes func(have, total int64) // sum over all pulls, running and done
	Done  func(Image)
}

// Pull pulls the missing images, as many at once as there are workers, and fills in
// the result of each. One that fails does not stop the others.
func (w *Workbench) Pull(ctx context.Context, list []Image, workers int, p PullProgress) {
	var mu sync.Mutex
	loaded := make([][2]int64, len(list))
	next := make(chan int)
	var group sync.WaitGroup
	for range min(max(workers, 1), len(list)) {
		group.Go(func() {
			for i := range next {
				mu.Lock()
				p.Begun(list[i])
				mu.Unlock()
				done := w.pull(ctx, list[i], func(have, total int64) {
					mu.Lock()
					defer mu.Unlock()
					loaded[i] = [2]int64{have, total}
					have, total = 0, 0
					for _, l := range loaded {
						have, total = have+l[0], total+l[1]
					}
					p.Bytes(have, total)
				})
				mu.Lock()
				list[i] = done
				p.Done(done)
				mu.Unlock()
			}
		})
	}
feed:
	for i := range list {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	group.Wait()
}

func (w *Workbench) pull(ctx context.Context, i Image, told func(have, total int64)) Image {
	begun := time.Now()
	came, err := w.drivers[i.kind].(env.Puller).Pull(ctx, i.Name, told)
	i.Seconds = time.Since(begun).Seconds()
	switch {
	case ctx.Err() != nil:
		i.Status = ImageLeft
	case err != nil:
		i.Status, i.Reason = ImageFailed, strings.Join(strings.Fields(err.Error()), " ")
	case came:
		i.Status = ImagePulled
	default:
		i.Status = ImageThere
	}
	return i
}
