package docker

import (
	"cmp"
	"fmt"
	"maps"
	"path"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
)

// containerConfig returns the configuration of a sandbox's container. The guest is the first process, the user is
// unprivileged, and only tmpfs mounts with a size limit are writable. The configuration overrides the image's
// ENTRYPOINT, USER, HEALTHCHECK and STOPSIGNAL.
func (d *driver) containerConfig(spec env.SandboxSpec, img *image, guestVolume string) (*container.Config, *container.HostConfig, error) {
	uid, gid, err := d.config.user()
	if err != nil {
		return nil, nil, err
	}
	labels := maps.Clone(d.config.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[labelMark], labels[labelOwner], labels[labelName] = "1", drivers.Self().String(), spec.Label
	cfg := &container.Config{
		Image: img.id, User: fmt.Sprintf("%d:%d", uid, gid), Hostname: "sandbox", WorkingDir: spec.Workdir,
		Entrypoint: []string{guestPath}, Cmd: drivers.GuestArgs(spec.Label), Env: []string{"GOMAXPROCS=2"},
		OpenStdin: true, StdinOnce: true, AttachStdin: true, AttachStdout: true, AttachStderr: true,
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		StopSignal:  "SIGKILL", // the guest ignores all other signals
		Labels:      labels,
	}
	l := spec.Limits
	host := &container.HostConfig{
		NetworkMode: "none", ExtraHosts: []string{"sandbox:127.0.1.1"}, ReadonlyRootfs: true, CapDrop: []string{"ALL"},
		SecurityOpt: []string{"no-new-privileges"},
		LogConfig:   container.LogConfig{Type: "none"},
		Runtime:     d.config.Runtime,
		Tmpfs:       d.tmpfsMounts(spec, uid, gid),
		Mounts: []mount.Mount{{
			Type: mount.TypeVolume, Source: guestVolume, Target: guestDir, ReadOnly: true,
			VolumeOptions: &mount.VolumeOptions{NoCopy: true},
		}},
	}
	if l.MemoryBytes > 0 {
		// tmpfs counts as memory of the container. The watchdog enforces MemoryBytes, and the cgroup is a second line
		// of defense. If its limit were lower, the kernel could stall the guest before the watchdog sees a burst.
		host.Memory = 2*l.MemoryBytes + max(l.DiskBytes, 0) + 64<<20
		host.MemorySwap = host.Memory
	}
	if l.CPUs > 0 {
		host.NanoCPUs = int64(l.CPUs * 1e9)
	}
	if l.Processes > 0 {
		// The guest's threads count as well, and must never reach the limit.
		pids := int64(l.Processes + l.Processes/4 + 96)
		host.PidsLimit = &pids
	}
	if spec.Network {
		host.NetworkMode = "default"
	}
	return cfg, host, nil
}

// tmpfsMounts returns the mount options of the writable directories, by path.
func (d *driver) tmpfsMounts(spec env.SandboxSpec, uid, gid int) map[string]string {
	own := fmt.Sprintf(",mode=0755,uid=%d,gid=%d", uid, gid)
	disk := spec.Limits.DiskBytes
	out := map[string]string{}
	for _, place := range []struct {
		path   string
		size   int64
		access string
	}{
		// The runtime may give the mount the mode of the image's directory. Set the owner, so that programs can write in
		// any case.
		{"/tmp", drivers.DiskShare(disk, 4), fmt.Sprintf(",mode=1777,uid=%d,gid=%d", uid, gid)},
		{"/dev/shm", drivers.DiskShare(disk, 1), ",mode=1777"},
		{drivers.Home, drivers.DiskShare(disk, 1), own},
		{spec.Workdir, drivers.DiskShare(disk, 10), own},
		{drivers.BinPath, 1 << 20, own},
	} {
		out[place.path] = tmpfsOptions(cmp.Or(d.config.Tmpfs[place.path], place.size)) + place.access
	}
	for place, size := range d.config.Tmpfs {
		if p := path.Clean(place); out[p] == "" {
			out[p] = tmpfsOptions(size) + own
		}
	}
	return out
}

// tmpfsOptions returns mount options that limit bytes and inodes. A negative size means no limits.
func tmpfsOptions(size int64) string {
	const base = "rw,exec,nosuid,nodev"
	if size < 0 {
		return base
	}
	return fmt.Sprintf("%s,size=%d,nr_inodes=%d", base, size, drivers.InodeLimit(size))
}
