package kubernetes

import (
	"os"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// The manifest of workers in docs/fleet.md is valid: it has no unknown field, its selector matches its pods, and it
// declares the volumes that it mounts.
func TestManifestInDocumentationIsValid(t *testing.T) {
	page, err := os.ReadFile("../../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```yaml\napiVersion: apps/v1\n")
	block, _, ok := strings.Cut(block, "```")
	if !ok {
		t.Fatal("docs/fleet.md shows no Deployment")
	}
	scheme := runtime.NewScheme()
	if err := apps.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	codec := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	read, _, err := codec.Decode([]byte("apiVersion: apps/v1\n"+block), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, ok := read.(*apps.Deployment)
	if !ok || len(d.Spec.Template.Spec.Containers) != 1 || d.Spec.Template.Spec.TerminationGracePeriodSeconds == nil {
		t.Fatalf("%+v", read)
	}
	for k, v := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[k] != v {
			t.Errorf("pods lack the label %s=%s", k, v)
		}
	}
	volumes := map[string]bool{}
	for _, v := range d.Spec.Template.Spec.Volumes {
		volumes[v.Name] = true
	}
	for _, m := range d.Spec.Template.Spec.Containers[0].VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("the volume %s is mounted but not declared", m.Name)
		}
	}
}
