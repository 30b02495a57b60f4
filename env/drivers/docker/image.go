package docker

import (
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"

	imagetypes "github.com/docker/docker/api/types/image"
)

// image is the daemon's answer about an image. A driver asks once, so that all its sandboxes of one name have the
// same image.
type image struct {
	id, digest string
	env        []string
	volumes    []string // VOLUME declarations
}

// newImage reads the answer. Unless anyPlatform is set, an image for another platform than the guest's is an error.
func newImage(name string, found imagetypes.InspectResponse, anyPlatform bool) (*image, error) {
	if !anyPlatform && (found.Os != "linux" || found.Architecture != runtime.GOARCH) {
		return nil, fmt.Errorf("image %s is made for %s/%s, and the guest for linux/%s: use an image of that platform (docker pull --platform linux/%s), or, where the daemon emulates the other, set sandbox.with.platform",
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
