package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/tracesmith/tracesmith/env/drivers"
)

// scheme contains the few types that the driver uses. The scheme of client-go contains all types and would slow down
// the start of every command.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	klog.SetLogger(logr.Discard()) // errors are returned; logs must not go to standard error
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, networkingv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // two types have the same name, which is a bug in the libraries
		}
	}
	return s
})

// client makes the control calls in one namespace and execs the driver's commands in pods. Each control call can be
// repeated safely. A client is safe for concurrent use.
type client struct {
	config    *rest.Config
	namespace string
	core, net *rest.RESTClient
	params    runtime.ParameterCodec
	reached   atomic.Bool // the server has answered at least once
	http      *http.Client
	users     atomic.Int64 // number of sandboxes and calls that use the client
}

// release must be called by each user of the client. The last call closes idle connections.
func (a *client) release() {
	if a.users.Add(-1) == 0 {
		utilnet.CloseIdleConnectionsFor(a.http.Transport) // http.Client.CloseIdleConnections does not unwrap client-go's transports
	}
}

func newClient(cfg *rest.Config, namespace string) (*client, error) {
	a := &client{config: cfg, namespace: namespace, params: runtime.NewParameterCodec(scheme())}
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	a.http = httpClient
	newREST := func(path string, gv schema.GroupVersion) (*rest.RESTClient, error) {
		c := rest.CopyConfig(cfg)
		c.APIPath, c.GroupVersion = path, &gv
		c.NegotiatedSerializer = serializer.NewCodecFactory(scheme()).WithoutConversion()
		return rest.RESTClientForConfigAndClient(c, httpClient)
	}
	if a.core, err = newREST("/api", corev1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	a.net, err = newREST("/apis", networkingv1.SchemeGroupVersion)
	return a, err
}

// Limits of control calls: the time of one attempt, and the number of attempts.
const (
	callTimeout = 30 * time.Second
	maxAttempts = 8
)

// watchTimeout is the duration of one watch. The server then ends it, and the driver starts a new one. It limits the
// delay that a half-open connection can cause.
const watchTimeout = 20 * time.Second

// retry repeats an idempotent call while its errors are transient.
func (a *client) retry(ctx context.Context, call func(context.Context) error) error {
	pause := wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Jitter: 0.3, Steps: maxAttempts, Cap: 30 * time.Second}
	for attempt := 1; ; attempt++ {
		callCtx, cancel := context.WithTimeout(ctx, callTimeout)
		err := call(callCtx)
		cancel()
		if status := apierrors.APIStatus(nil); err == nil || errors.As(err, &status) {
			a.reached.Store(true)
		}
		if err == nil || ctx.Err() != nil || attempt == maxAttempts || !a.transient(err) {
			return err
		}
		delay := pause.Step()
		if asked, ok := apierrors.SuggestsClientDelay(err); ok && asked > 0 {
			delay = min(time.Duration(asked)*time.Second, time.Minute)
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(delay):
		}
	}
}

// transient reports whether repeating a call may help. A broken connection is transient only if the server was reached
// before. Otherwise the address is probably wrong.
func (a *client) transient(err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError ||
			apierrors.IsConflict(err)
	}
	_, network := errors.AsType[net.Error](err)
	broken := network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	return broken && a.reached.Load()
}

// create creates a pod. If the response is lost, the repeated call finds the pod. It is an error if another process has
// created a pod with the same name.
func (a *client) create(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	var out *corev1.Pod
	err := a.retry(ctx, func(ctx context.Context) error {
		created := &corev1.Pod{}
		err := a.core.Post().Namespace(a.namespace).Resource("pods").Body(pod).MaxRetries(0).Do(ctx).Into(created)
		if apierrors.IsAlreadyExists(err) {
			existing, getErr := a.getOnce(ctx, pod.Name)
			if getErr != nil {
				return getErr
			}
			if existing.Annotations[annotationAttempt] != pod.Annotations[annotationAttempt] {
				return fmt.Errorf("%w, and another process created it", err)
			}
			created, err = existing, nil
		}
		out = created
		return err
	})
	return out, err
}

// getOnce is get without retries.
func (a *client) getOnce(ctx context.Context, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	return pod, a.core.Get().Namespace(a.namespace).Resource("pods").Name(name).MaxRetries(0).Do(ctx).Into(pod)
}

func (a *client) get(ctx context.Context, name string) (pod *corev1.Pod, err error) {
	err = a.retry(ctx, func(ctx context.Context) error {
		pod, err = a.getOnce(ctx, name)
		return err
	})
	return pod, err
}

// list returns the pods that match a selector.
func (a *client) list(ctx context.Context, selector string) ([]corev1.Pod, error) {
	var all []corev1.Pod
	opts := metav1.ListOptions{LabelSelector: selector, Limit: 500}
	for {
		page := &corev1.PodList{}
		err := a.retry(ctx, func(ctx context.Context) error {
			return a.core.Get().Namespace(a.namespace).Resource("pods").VersionedParams(&opts, a.params).MaxRetries(0).Do(ctx).Into(page)
		})
		if apierrors.IsResourceExpired(err) && opts.Continue != "" { // paging took too long: start over
			all, opts.Continue = nil, ""
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if opts.Continue = page.Continue; opts.Continue == "" {
			return all, nil
		}
	}
}

// remove deletes a pod if it has this uid.
func (a *client) remove(ctx context.Context, name string, uid types.UID) error {
	grace := int64(1) // with 0, the deletion would not wait for the node
	return a.retry(ctx, func(ctx context.Context) error {
		err := a.core.Delete().Namespace(a.namespace).Resource("pods").Name(name).MaxRetries(0).
			Body(&metav1.DeleteOptions{GracePeriodSeconds: &grace, Preconditions: &metav1.Preconditions{UID: &uid}}).Do(ctx).Error()
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // deleted already, or replaced by another pod
			return nil
		}
		return err
	})
}

// watch returns the changes of one pod after a version. The server ends the watch after watchTimeout.
func (a *client) watch(ctx context.Context, name, version string) (watch.Interface, error) {
	timeout := int64(watchTimeout / time.Second)
	return a.core.Get().Namespace(a.namespace).Resource("pods").VersionedParams(&metav1.ListOptions{
		Watch: true, FieldSelector: "metadata.name=" + name, ResourceVersion: version, TimeoutSeconds: &timeout, AllowWatchBookmarks: true,
	}, a.params).MaxRetries(0).Watch(ctx)
}

// createPolicy creates the network policy that denies all traffic of sandboxes, if it does not exist.
func (a *client) createPolicy(ctx context.Context) error {
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "tracesmith-no-network", Labels: map[string]string{labelManagedBy: managedBy}},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{labelNetwork: "none"}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		},
	}
	return a.retry(ctx, func(ctx context.Context) error {
		err := a.net.Post().Namespace(a.namespace).Resource("networkpolicies").Body(policy).MaxRetries(0).Do(ctx).Error()
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// warning returns the last warning of the cluster about a pod, or "" if there is none or this account may not read it.
func (a *client) warning(ctx context.Context, name string) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drivers.CauseTimeout)
	defer cancel()
	list := &corev1.EventList{}
	err := a.core.Get().Namespace(a.namespace).Resource("events").VersionedParams(&metav1.ListOptions{
		FieldSelector: "type=Warning,involvedObject.name=" + name, Limit: 100,
	}, a.params).MaxRetries(0).Do(ctx).Into(list)
	if err != nil || len(list.Items) == 0 {
		return ""
	}
	last := slices.MaxFunc(list.Items, func(x, y corev1.Event) int { return x.LastTimestamp.Compare(y.LastTimestamp.Time) })
	return last.Reason + ": " + printable(last.Message)
}
