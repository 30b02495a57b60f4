package docker

import (
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"

	imagetypes "github.com/docker/docker/api/types/image"
)

// image describes an image. A driver looks up a name only once, so that all its sandboxes with that name have the same
// image.
type image struct {
	id, digest string // digest is the id if the image has no repository digest
	env        []string
	volumes    []string // VOLUME declarations
}

// newImage converts the daemon's description of an image. Unless anyPlatform is set, it returns an error if the image
// is not for the guest's platform.
func newImage(name string, found imagetypes.InspectResponse, anyPlatform bool) (*image, error) {
	if !anyPlatform && (found.Os != "linux" || found.Architecture != runtime.GOARCH) {
		return nil, fmt.Errorf("image %s is for %s/%s, but the guest is for linux/%s: use an image of that platform (docker pull --platform linux/%s), or set sandbox.with.platform if the daemon can emulate the other one",
			name, found.Os, found.Architecture, runtime.GOARCH, runtime.GOARCH)
	}
	img := &image{id: found.ID, digest: found.ID}
	if len(found.RepoDigests) > 0 {
		img.digest = found.RepoDigests[0]
	}
	if c := found.Config; c != nil {
		img.env = c.Env
		for _, v := range slices.Sorted(maps.Keys(c.Volumes)) {
			img.volumes = append(img.volumes, path.Clean(v))
		}
	}
	return img, nil
}
