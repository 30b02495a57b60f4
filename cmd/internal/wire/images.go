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
	Status  string  `json:"status"` // ImagePresent, ImagePulled, ImageFailed or ImageSkipped
	Reason  string  `json:"reason,omitempty"`
	Seconds float64 `json:"seconds"`

	kind string // of the sandbox
}

// Values of Image.Status.
const (
	ImagePresent = "there"  // the daemon already had it
	ImagePulled  = "pulled" // Pull pulled it
	ImageFailed  = "failed"
	ImageSkipped = "left" // Pull was stopped before it pulled the image
)

// Images lists the images that tasks run in, each once, in the order of the tasks. It
// returns an error if a task's sandbox cannot pull images in advance.
func (w *Workbench) Images(tasks []schemas.Task) (list []Image, err error) {
	for _, t := range tasks {
		kind, name := w.kind(t), cmp.Or(w.cfg.Sandbox.Image, t.Image)
		if name == "" || kind == "bubblewrap" || kind == "local" {
			continue
		}
		if _, canPull := w.drivers[kind].(env.Puller); !canPull {
			return nil, fmt.Errorf("sandbox %s pulls images only when it starts: prepull cannot pull them", kind)
		}
		i := slices.IndexFunc(list, func(img Image) bool { return img.Name == name && img.kind == kind })
		if i < 0 {
			list, i = append(list, Image{Name: name, Status: ImageSkipped, kind: kind}), len(list)
		}
		list[i].Tasks++
	}
	return list, nil
}

// PullProgress receives the progress of Pull, one call at a time.
type PullProgress struct {
	Started func(Image)
	Bytes   func(have, total int64) // sums over all pulls, running and done
	Done    func(Image)
}

// Pull pulls the missing images, up to workers of them at once, and stores the result of
// each pull in list. A pull that fails does not stop the others.
func (w *Workbench) Pull(ctx context.Context, list []Image, workers int, p PullProgress) {
	var mu sync.Mutex
	loaded := make([][2]int64, len(list))
	next := make(chan int)
	var group sync.WaitGroup
	for range min(max(workers, 1), len(list)) {
		group.Go(func() {
			for i := range next {
				mu.Lock()
				p.Started(list[i])
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

func (w *Workbench) pull(ctx context.Context, img Image, progress func(have, total int64)) Image {
	start := time.Now()
	pulled, err := w.drivers[img.kind].(env.Puller).Pull(ctx, img.Name, progress)
	img.Seconds = time.Since(start).Seconds()
	switch {
	case ctx.Err() != nil:
		img.Status = ImageSkipped
	case err != nil:
		img.Status, img.Reason = ImageFailed, strings.Join(strings.Fields(err.Error()), " ")
	case pulled:
		img.Status = ImagePulled
	default:
		img.Status = ImagePresent
	}
	return img
}
