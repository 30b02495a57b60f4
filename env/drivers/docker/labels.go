package docker

import "github.com/tracesmith/tracesmith/env/drivers"

// Labels of containers and volumes.
const (
	labelMark   = "tracesmith"
	labelOwner  = "tracesmith.owner"
	labelName   = "tracesmith.label"
	labelSource = "tracesmith.source" // of a copy: the machine and path of the original
)

// labelsOfFile returns the labels of a copy of a path of this host. If the path no longer exists, the copy may be
// removed.
func labelsOfFile(p string) map[string]string {
	return map[string]string{labelMark: "1", labelSource: drivers.MachineID() + ":" + p}
}

// labelsOfOwner returns the labels of an object that belongs to this process and must not outlive it.
func labelsOfOwner() map[string]string {
	return map[string]string{labelMark: "1", labelOwner: drivers.Self().String()}
}
