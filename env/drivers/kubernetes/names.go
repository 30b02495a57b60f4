package kubernetes

// Labels and annotations of pods and policies. The owner is an annotation because it is longer than the 63 characters
// of a label.
const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "tracesmith"

	namePrefix        = "tracesmith/"
	labelHost         = namePrefix + "host"    // the machine of the owner
	labelSandbox      = namePrefix + "for"     // the sandbox's label, shortened to what a Kubernetes label can contain
	labelNetwork      = namePrefix + "network" // none or any
	annotationOwner   = namePrefix + "owner"
	annotationSandbox = namePrefix + "label"   // the sandbox's label, unchanged
	annotationAttempt = namePrefix + "attempt" // identifies the pod if a create is repeated
)

// Containers of a pod. The guest is the first process of the sandbox container, so that programs cannot kill it.
// Attaching to the first process would write every byte to the node's log. Therefore the host execs a relay in a second
// container, and the guest connects to the relay through a socket in a shared volume.
const (
	sandboxName = "sandbox"
	relayName   = "relay"
	initName    = "deliver"

	guestDir   = "/run/tracesmith/host" // shared volume, read-only in the sandbox container
	guestPath  = guestDir + "/guest"
	socketPath = guestDir + "/socket"
	volumesDir = "/volumes" // where the init container creates directories in volumes
)
