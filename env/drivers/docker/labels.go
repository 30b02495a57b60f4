package docker

import "github.com/tracesmith/tracesmith/env/drivers"

// Labels of containers and volumes.
const (
	labelMark   = "tracesmith"
	labelOwner  = "tracesmith.owner"
	labelName   = "tracesmith.label"
	labelSource = "tracesmith.source" // of a copy: machine and path
)

// labelsOfFile marks a copy of what is at a path of this host. If that no longer exists, the copy may be removed.
func labelsOfFile(p string) map[string]string {
	return map[string]string{labelMark: "1", labelSource: drivers.Machine() + ":" + p}
}

// labelsOfOwner marks what must not outlive this process.
func labelsOfOwner() map[string]string {
	return map[string]string{labelMark: "1", labelOwner: drivers.Self().String()}
}
