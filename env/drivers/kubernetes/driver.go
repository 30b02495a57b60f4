// Package kubernetes starts sandboxes as pods of a Kubernetes cluster.
package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/exec"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/env/guest"
)

func init() {
	env.Drivers.Register(plugin.Spec[env.Driver, struct{}]{
		Kind:    "kubernetes",
		Summary: "pods of a Kubernetes cluster, for tasks that name an image",
		Default: func() any { return defaultConfig() },
		New: func(cfg any, _ struct{}) (env.Driver, error) {
			c := *cfg.(*config)
			if err := c.check(); err != nil {
				return nil, err
			}
			return &driver{config: c}, nil
		},
	})
}

// driver starts each sandbox as a pod. The guest is the first process of the sandbox container. An exec stream connects
// it to the host. When the stream ends, the guest ends, and then the pod.
type driver struct {
	config  config
	pythons drivers.ImagePythons

	mu        sync.Mutex
	api       *client
	policyErr error // from creating the network policy; nil before the first attempt and after success
	policySet bool  // policyErr is final
	isolated  bool  // a pod with the policy could not reach the network
}

func (*driver) Name() string { return "kubernetes" }

// connect returns the shared client, which it creates at first use. It does not contact the API server yet. The caller
// must call release on the client.
func (d *driver) connect() (*client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.api == nil {
		cfg, namespace, err := d.config.dial()
		if err != nil {
			return nil, err
		}
		if d.api, err = newClient(cfg, namespace); err != nil {
			return nil, err
		}
	}
	d.api.users.Add(1)
	return d.api, nil
}

// ensurePolicy creates the network policy that denies all traffic of sandboxes, and reports whether the policy exists.
// The cluster may not enforce it, see isolates.
func (d *driver) ensurePolicy(ctx context.Context, api *client, spec env.SandboxSpec) bool {
	if spec.Network || !d.config.NetworkPolicy {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.policySet {
		err := api.createPolicy(ctx)
		// A refusal is final. After any other error, the next sandbox tries again.
		d.policySet = err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
		d.policyErr = err
	}
	return d.policyErr == nil
}

// isolates reports whether the cluster enforces the policy, by trying to reach the API server from a pod. Enforcement
// needs a network plugin, which not every cluster has. After one pod was isolated, isolates returns true for all later
// pods.
func (d *driver) isolates(ctx context.Context, api *client, pod string) bool {
	d.mu.Lock()
	isolated := d.isolated
	d.mu.Unlock()
	if isolated {
		return true
	}
	err := api.exec(ctx, pod, relayName, []string{guestPath, guest.ServeArg, "-reach"}, nil, &drivers.Tail{}, &drivers.Tail{})
	_, isolated = errors.AsType[exec.CodeExitError](err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.isolated = d.isolated || isolated
	return isolated
}

// withRemedy adds the remedy to a common error of an API server.
func (d *driver) withRemedy(err error, api *client) error {
	text := err.Error()
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(text, "exceeded quota"):
		return fmt.Errorf("%w: run fewer at once, lower sandbox.memory, sandbox.cpus or sandbox.with.requests, or have the namespace's quota raised", err)
	case apierrors.IsForbidden(err) && (strings.Contains(text, "admission") || strings.Contains(text, "violates PodSecurity")):
		return fmt.Errorf("%w: an admission rule of the cluster refused the pod: change sandbox.with.pod_spec to comply with it", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: let this account create, get, list, watch and delete pods and create pods/exec in namespace %s (see `kubectl auth can-i --list`)", err, api.namespace)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w: the credentials are missing or have expired: renew them (see `kubectl auth whoami`)", err)
	case apierrors.IsNotFound(err) && strings.Contains(text, "namespaces"):
		return fmt.Errorf("%w: create the namespace, or set sandbox.with.namespace", err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return fmt.Errorf("%w: check sandbox.with.pod_spec", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: not ready within start_timeout (%v): see `kubectl describe pod` for the cause, or raise sandbox.with.start_timeout", err, time.Duration(d.config.StartTimeout))
	case !api.reached.Load():
		return fmt.Errorf("%w: the API server at %s does not answer: check the kubeconfig, its context and the network, or choose --sandbox bubblewrap", err, api.config.Host)
	}
	return err
}
