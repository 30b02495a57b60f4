// Package drivers contains the code that the sandbox drivers share: child processes that run a guest, owners, scratch
// directories, interpreters and limits. Each driver has its own package below this one: bubblewrap (the default),
// docker, kubernetes and local. A driver package registers its kind in env.Drivers when it is imported. A driver
// starts a process, container or pod that runs the guest, and connects package guest to it by a byte stream.
package drivers
