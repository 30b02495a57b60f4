package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	cerrdefs "github.com/containerd/errdefs"
	imagetypes "github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/tracesmith/tracesmith/env"
)

var _ env.Puller = (*driver)(nil)

// Pull implements env.Puller. It ignores the setting pull.
func (d *driver) Pull(ctx context.Context, name string, progress func(have, total int64)) (fetched bool, err error) {
	cli, err := d.connect()
	if err != nil {
		return false, fmt.Errorf("fetching an image: %w", err)
	}
	defer func() { err = errors.Join(err, d.release()) }()
	if _, err = cli.ImageInspect(ctx, name); cerrdefs.IsNotFound(err) {
		fetched, err = true, d.pull(ctx, cli, name, progress)
	}
	if err != nil {
		return false, fmt.Errorf("fetching an image: %w", d.withRemedy(err, name))
	}
	return fetched, nil
}

// Ensure implements env.Puller.
func (d *driver) Ensure(ctx context.Context, name string) (err error) {
	name = cmp.Or(name, d.config.Image)
	if d.knownImage(name) != nil {
		return nil
	}
	cli, err := d.connect()
	if err != nil {
		return fmt.Errorf("starting a docker sandbox: %w", err)
	}
	defer func() { err = errors.Join(err, d.release()) }()
	if _, err := d.image(ctx, cli, name); err != nil {
		return fmt.Errorf("starting a docker sandbox: %w", d.withRemedy(err, name))
	}
	return nil
}

// image looks up an image. It pulls a missing one if the setting pull allows that.
func (d *driver) image(ctx context.Context, cli *client.Client, name string) (*image, error) {
	if known := d.knownImage(name); known != nil {
		return known, nil
	}
	found, err := cli.ImageInspect(ctx, name)
	if cerrdefs.IsNotFound(err) && d.config.Pull == pullMissing {
		found, err = d.pullLimited(ctx, cli, name)
	}
	if err != nil {
		return nil, err
	}
	img, err := newImage(name, found, d.config.Platform != "")
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.images[name] = img
	return img, nil
}

// pullLimited pulls an image for a sandbox. It first waits until fewer than the configured number of pulls run, and
// does not pull if another sandbox has pulled the image meanwhile.
func (d *driver) pullLimited(ctx context.Context, cli *client.Client, name string) (found imagetypes.InspectResponse, err error) {
	if err := d.pulls.Acquire(ctx, 1); err != nil {
		return found, fmt.Errorf("waiting to pull %s: %w", name, err)
	}
	defer d.pulls.Release(1)
	if found, err = cli.ImageInspect(ctx, name); !cerrdefs.IsNotFound(err) {
		return found, err
	}
	if err := d.pull(ctx, cli, name, nil); err != nil {
		return found, err
	}
	return cli.ImageInspect(ctx, name)
}

// pull fetches an image. The daemon reports progress and failures in the stream of its response.
func (d *driver) pull(ctx context.Context, cli *client.Client, name string, progress func(have, total int64)) error {
	auth, err := d.config.auth()
	if err != nil {
		return err
	}
	stream, err := cli.ImagePull(ctx, name, imagetypes.PullOptions{RegistryAuth: auth, Platform: d.config.Platform})
	if err != nil {
		return fmt.Errorf("pulling %s: %w", name, err)
	}
	defer stream.Close()
	layers := layerProgress{}
	for dec := json.NewDecoder(stream); ; {
		var line pullLine
		err := dec.Decode(&line)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && line.Error != "" {
			err = errors.New(line.Error)
		}
		if err != nil {
			return fmt.Errorf("pulling %s: %w", name, err)
		}
		if layers.add(line) && progress != nil {
			progress(layers.sum())
		}
	}
}

// pullLine is one message of the daemon about the progress of a pull.
type pullLine struct {
	ID       string     `json:"id"` // of the layer
	Status   string     `json:"status"`
	Error    string     `json:"error"`
	Progress layerBytes `json:"progressDetail"`
}

type layerBytes struct {
	Current int64 `json:"current"`
	Total   int64 `json:"total"` // 0 = unknown
}

// layerProgress has the number of bytes of each layer that have arrived, and the size of the layer, by the layer's id.
type layerProgress map[string][2]int64

func (l layerProgress) add(line pullLine) (changed bool) {
	now := l[line.ID]
	switch line.Status {
	case "Downloading":
		now = [2]int64{line.Progress.Current, max(line.Progress.Total, line.Progress.Current)}
	case "Download complete", "Pull complete":
		now[0] = now[1]
	default:
		return false
	}
	changed = now != l[line.ID]
	l[line.ID] = now
	return changed
}

func (l layerProgress) sum() (have, total int64) {
	for _, layer := range l {
		have, total = have+layer[0], total+layer[1]
	}
	return have, total
}
