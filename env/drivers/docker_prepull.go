package drivers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/tracesmith/tracesmith/env"
)

var _ env.Puller = (*docker)(nil)

// Pull implements env.Puller, whatever the settings say of missing images.
func (d *docker) Pull(ctx context.Context, name string, told func(have, total int64)) (came bool, err error) {
	cli, err := d.connect()
	if err != nil {
		return false, fmt.Errorf("fetching an image: %w", err)
	}
	defer func() { err = errors.Join(err, d.release()) }()
	if _, err = cli.ImageInspect(ctx, name); cerrdefs.IsNotFound(err) {
		came, err = true, d.pull(ctx, cli, name, told)
	}
	if err != nil {
		return false, fmt.Errorf("fetching an image: %w", d.remedy(err, name))
	}
	return came, nil
}

// Ensure implements env.Puller.
func (d *docker) Ensure(ctx context.Context, name string) (err error) {
	name = cmp.Or(name, d.config.Image)
	if d.seenImage(name) != nil {
		return nil
	}
	cli, err := d.connect()
	if err != nil {
		return fmt.Errorf("starting a docker sandbox: %w", err)
	}
	defer func() { err = errors.Join(err, d.release()) }()
	if _, err := d.image(ctx, cli, name); err != nil {
		return fmt.Errorf("starting a docker sandbox: %w", d.remedy(err, name))
	}
	return nil
}

// fetch pulls an image that a sandbox needs, in turn, and says what it is. Who had
// the turn before may have pulled the same.
func (d *docker) fetch(ctx context.Context, cli *client.Client, name string) (found image.InspectResponse, err error) {
	if err := d.pulls.Acquire(ctx, 1); err != nil {
		return found, fmt.Errorf("waiting for a turn to pull %s: %w", name, err)
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

// pull fetches an image; the daemon reports failure in the stream it answers with.
func (d *docker) pull(ctx context.Context, cli *client.Client, name string, told func(have, total int64)) error {
	auth, err := d.config.auth()
	if err != nil {
		return err
	}
	stream, err := cli.ImagePull(ctx, name, image.PullOptions{RegistryAuth: auth, Platform: d.config.Platform})
	if err != nil {
		return fmt.Errorf("pulling %s: %w", name, err)
	}
	defer stream.Close()
	layers := loading{}
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
		if layers.add(line) && told != nil {
			told(layers.sum())
		}
	}
}

// pullLine is one message of the daemon about a pull.
type pullLine struct {
	ID       string `json:"id"` // of the layer
	Status   string `json:"status"`
	Error    string `json:"error"`
	Progress loaded `json:"progressDetail"`
}

type loaded struct {
	Current int64 `json:"current"`
	Total   int64 `json:"total"` // 0 = not known
}

// loading is how much of each layer has come, and how much there is of it.
type loading map[string][2]int64

func (l loading) add(line pullLine) (changed bool) {
	at := l[line.ID]
	switch line.Status {
	case "Downloading":
		at = [2]int64{line.Progress.Current, max(line.Progress.Total, line.Progress.Current)}
	case "Download complete", "Pull complete":
		at[0] = at[1]
	default:
		return false
	}
	changed = at != l[line.ID]
	l[line.ID] = at
	return changed
}

func (l loading) sum() (have, total int64) {
	for _, layer := range l {
		have, total = have+layer[0], total+layer[1]
	}
	return have, total
}
