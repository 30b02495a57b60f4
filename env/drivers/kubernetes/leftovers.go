package kubernetes

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
)

// Leftovers implements env.LeftoverLister. It returns the pods of dead processes of this machine, and pods of other
// machines that have ended. A running pod of another machine has a live owner or will end soon, because it ends with
// its owner's stream or at its deadline.
func (d *driver) Leftovers(ctx context.Context) ([]env.Leftover, error) {
	api, err := d.connect()
	switch {
	case err != nil && d.config.Kubeconfig == "" && os.Getenv("KUBECONFIG") == "":
		return nil, nil // the user has named no cluster
	case err != nil:
		return nil, fmt.Errorf("%w: %w", env.ErrUnreachable, err)
	}
	defer api.release()
	pods, err := api.list(ctx, labelManagedBy+"="+managedBy)
	if err != nil {
		if !api.reached.Load() {
			return nil, fmt.Errorf("%w: %w", env.ErrUnreachable, err)
		}
		return nil, fmt.Errorf("looking for old pods: %w", d.withRemedy(err, api))
	}
	var out []env.Leftover
	for _, p := range pods {
		o, ok := drivers.ParseOwner(p.Annotations[annotationOwner])
		if !ok || p.DeletionTimestamp != nil || !o.Dead() && !endedLongAgo(&p, time.Now()) {
			continue
		}
		out = append(out, env.Leftover{
			Kind: "pod", Name: p.Namespace + "/" + p.Name, What: p.Annotations[annotationSandbox], Since: p.CreationTimestamp.Time,
			Remove: func(ctx context.Context) error {
				api, err := d.connect()
				if err != nil {
					return err
				}
				defer api.release()
				return api.remove(ctx, p.Name, p.UID)
			},
		})
	}
	return out, nil
}
