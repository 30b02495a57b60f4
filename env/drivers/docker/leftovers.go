package docker

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
	"github.com/tracesmith/tracesmith/env/drivers"
)

// maxVolumeAge is the age after which the copy of a guest or a mount is removed if no container uses it. A later sandbox
// creates it again if necessary.
const maxVolumeAge = 7 * 24 * time.Hour

// Leftovers implements env.LeftoverLister. It returns the containers and volumes of dead processes, and old copies that
// no container uses.
func (d *driver) Leftovers(ctx context.Context) (_ []env.Leftover, err error) {
	cli, err := d.connect()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", env.ErrUnreachable, err)
	}
	defer func() { err = errors.Join(err, d.release()) }()
	marked := filters.NewArgs(filters.Arg("label", labelMark))
	list, err := cli.ContainerList(ctx, container.ListOptions{All: true, Filters: marked})
	if client.IsErrConnectionFailed(err) {
		return nil, fmt.Errorf("%w: %w", env.ErrUnreachable, err)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for old containers: %w", err)
	}
	var out []env.Leftover
	for _, c := range list {
		if o, ok := drivers.ParseOwner(c.Labels[labelOwner]); ok && o.Dead() {
			out = append(out, env.Leftover{
				Kind: "container", Name: fmt.Sprintf("%.12s", c.ID), What: c.Labels[labelName], Since: time.Unix(c.Created, 0),
				Remove: func(ctx context.Context) error {
					return d.withClient(func(cli *client.Client) error {
						return cli.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
					})
				},
			})
		}
	}
	marked.Add("dangling", "true")
	volumes, err := cli.VolumeList(ctx, volume.ListOptions{Filters: marked})
	if err != nil {
		return out, fmt.Errorf("looking for old volumes: %w", err)
	}
	for _, v := range volumes.Volumes {
		created, _ := time.Parse(time.RFC3339, v.CreatedAt)
		o, owned := drivers.ParseOwner(v.Labels[labelOwner])
		source, isLocal := strings.CutPrefix(v.Labels[labelSource], drivers.MachineID()+":")
		if owned && !o.Dead() || !owned && time.Since(created) < maxVolumeAge && !(isLocal && !exists(source)) {
			continue
		}
		out = append(out, env.Leftover{
			Kind: "volume", Name: v.Name, What: v.Labels[labelSource], Since: created,
			Remove: func(ctx context.Context) error {
				return d.withClient(func(cli *client.Client) error { return cli.VolumeRemove(ctx, v.Name, false) })
			},
		})
	}
	return out, nil
}

// withClient runs one removal. It is not an error if another process removes the same object.
func (d *driver) withClient(remove func(*client.Client) error) error {
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
