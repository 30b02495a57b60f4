package drivers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"

	"github.com/tracesmith/tracesmith/env"
)

// volumeAge is how old a copy of a guest or a mount may become that no container
// uses; a later sandbox would make it again.
const volumeAge = 7 * 24 * time.Hour

// Reap implements env.Driver.
func (d *docker) Reap(ctx context.Context) (int, error) {
	return env.RemoveLeftovers(ctx, d)
}

// Leftovers implements env.Keeper: containers of dead processes, their volumes,
// and copies nobody has used for long.
func (d *docker) Leftovers(ctx context.Context) (_ []env.Leftover, err error) {
	cli, err := d.connect()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", env.ErrAbsent, err)
	}
	defer func() { err = errors.Join(err, d.release()) }()
	ours := filters.NewArgs(filters.Arg("label", dockerMark))
	list, err := cli.ContainerList(ctx, container.ListOptions{All: true, Filters: ours})
	if client.IsErrConnectionFailed(err) {
		return nil, fmt.Errorf("%w: %w", env.ErrAbsent, err)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for old containers: %w", err)
	}
	var out []env.Leftover
	for _, c := range list {
		if o, ok := parseOwner(c.Labels[dockerOwner]); ok && o.dead() {
			out = append(out, env.Leftover{
				Kind: "container", Name: fmt.Sprintf("%.12s", c.ID), What: c.Labels[dockerLabel], Since: time.Unix(c.Created, 0),
				Remove: func(ctx context.Context) error {
					return d.with(func(cli *client.Client) error {
						return cli.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
					})
				},
			})
		}
	}
	ours.Add("dangling", "true")
	volumes, err := cli.VolumeList(ctx, volume.ListOptions{Filters: ours})
	if err != nil {
		return out, fmt.Errorf("looking for old volumes: %w", err)
	}
	for _, v := range volumes.Volumes {
		made, _ := time.Parse(time.RFC3339, v.CreatedAt)
		o, owned := parseOwner(v.Labels[dockerOwner])
		source, ours := strings.CutPrefix(v.Labels[dockerSource], here().host+":")
		if owned && !o.dead() || !owned && time.Since(made) < volumeAge && !(ours && !exists(source)) {
			continue
		}
		out = append(out, env.Leftover{
			Kind: "volume", Name: v.Name, What: v.Labels[dockerSource], Since: made,
			Remove: func(ctx context.Context) error {
				return d.with(func(cli *client.Client) error { return cli.VolumeRemove(ctx, v.Name, false) })
			},
		})
	}
	return out, nil
}

// with runs one removal; what another process removes beside us is gone as well.
func (d *docker) with(remove func(*client.Client) error) error {
	cli, err := d.connect()
	if err != nil {
		return err
	}
	err = remove(cli)
	if cerrdefs.IsNotFound(err) || cerrdefs.IsConflict(err) && !strings.Contains(err.Error(), "in use") {
		err = nil
	}
	return errors.Join(err, d.release())
}
