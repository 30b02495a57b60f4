// Package drivers holds what the sandbox drivers share: child processes that run a guest, owners, scratch
// directories, interpreters and limits. Each driver has its own package below this one, bubblewrap (the default),
// docker, kubernetes and local, which registers its kind in env.Drivers when it is imported. A driver starts
// something with the guest inside and hands the byte stream to package guest, which does the rest.
package drivers
