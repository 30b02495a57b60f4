package kubernetes

// Labels and annotations of pods and policies. An owner has more than the 63 characters of a label.
const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "tracesmith"

	namePrefix   = "tracesmith/"
	labelHost    = namePrefix + "host"    // the machine of the owner
	labelName    = namePrefix + "for"     // the sandbox's label, as far as a label can hold it
	labelNetwork = namePrefix + "network" // none or any
	noteOwner    = namePrefix + "owner"
	noteLabel    = namePrefix + "label"   // the sandbox's label, unchanged
	noteAttempt  = namePrefix + "attempt" // identifies the pod if a create is repeated
)

// Containers of a pod. The guest is the first process of the sandbox container, so that no program can kill it. It
// listens on a socket in a shared volume, and the host execs a relay in a second container that connects to it: the
// node would log every byte of an attached first process.
const (
	sandboxName = "sandbox"
	relayName   = "relay"
	initName    = "deliver"

	guestDir   = "/run/tracesmith/host" // shared, read-only to the sandbox
	guestPath  = guestDir + "/guest"
	socketPath = guestDir + "/socket"
	volumesDir = "/volumes" // where the init container makes directories
)
