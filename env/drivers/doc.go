// Package drivers holds the kinds of sandbox: bubblewrap (the default), docker,
// kubernetes and local. A driver starts something with the guest inside
// and hands its byte stream to package guest, which does the rest.
//
// It imports env, env/guest, schemas and configs/plugin; the Docker and
// Kubernetes clients have their home here.
package drivers
