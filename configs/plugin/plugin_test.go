package plugin_test

import (
	"errors"
	"testing"

	"github.com/tracesmith/tracesmith/configs/plugin"
)

type boxConfig struct {
	Size  int      `json:"size"`
	Names []string `json:"names,omitempty"`
	inner int

	Lining *liningConfig `json:"lining,omitempty"`
}

type liningConfig struct {
	Thickness int    `json:"thickness"`
	Stuff     string `json:"stuff"`
}

func registry() *plugin.Registry[int, int] {
	r := &plugin.Registry[int, int]{What: "box"}
	r.Register(plugin.Spec[int, int]{Kind: "plain", New: func(_ any, n int) (int, error) { return n, nil }})
	r.Register(plugin.Spec[int, int]{Kind: "empty", Default: func() any { return &struct{}{} }, New: func(_ any, n int) (int, error) { return n, nil }})
	r.Register(plugin.Spec[int, int]{
		Kind: "sized", Default: func() any { return &boxConfig{Size: 3, inner: 1} },
		New: func(cfg any, n int) (int, error) {
			c := cfg.(*boxConfig)
			if c.Size < 0 {
				return 0, errors.New("size is negative: give 0 or more")
			}
			return c.Size + n + c.inner, nil
		},
	})
	return r
}

func TestBuild(t *testing.T) {
	for kind, want := range map[string]int{"plain": 10, "sized": 14} {
		if got, err := registry().Build(kind, nil, 10); err != nil || got != want {
			t.Errorf("%s: %d, %v", kind, got, err)
		}
	}
	if got, err := registry().Build("sized", map[string]any{"size": 5}, 0); err != nil || got != 6 {
		t.Errorf("%d, %v", got, err)
	}
}

func TestErrorsListKnownSettings(t *testing.T) {
	for want, c := range map[string]struct {
		kind string
		with map[string]any
	}{
		`unknown box "round": choose one of empty, plain, sized`:                                {"round", nil},
		`box "plain" takes no settings`:                                                         {"plain", map[string]any{"size": 1}},
		`box "empty": unknown field "size": it takes no settings`:                               {"empty", map[string]any{"size": 1}},
		`box "sized": unknown field "colour": known are size, names, lining`:                    {"sized", map[string]any{"colour": "red"}},
		`box "sized": unknown field "siez": did you mean "size"? known are size, names, lining`: {"sized", map[string]any{"siez": 1}},
		`box "sized": unknown field "lining.stuf": did you mean "stuff"? known are thickness, stuff`: {
			"sized", map[string]any{"size": 1, "lining": map[string]any{"thickness": 1, "stuf": "felt"}}},
		`box "sized": setting "size" must not be a string`: {"sized", map[string]any{"size": "big"}},
		`box "sized": size is negative: give 0 or more`:    {"sized", map[string]any{"size": -1}},
	} {
		if _, err := registry().Build(c.kind, c.with, 0); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// An alias builds the same component; lists and messages contain only the kind.
func TestAliases(t *testing.T) {
	r := registry()
	r.Register(plugin.Spec[int, int]{Kind: "round", Aliases: []string{"ball", "globe"}, New: func(any, int) (int, error) { return 7, nil }})
	for _, name := range []string{"round", "ball", "globe"} {
		spec, ok := r.Lookup(name)
		got, err := r.Build(name, nil, 0)
		if !ok || spec.Kind != "round" || err != nil || got != 7 {
			t.Errorf("%s: %q, %d, %v", name, spec.Kind, got, err)
		}
	}
	if _, err := r.Build("cube", nil, 0); err == nil || err.Error() != `unknown box "cube": choose one of empty, plain, round, sized` {
		t.Error(err)
	}
	for _, taken := range []string{"plain", "ball"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was registered twice", taken)
				}
			}()
			r.Register(plugin.Spec[int, int]{Kind: "not " + taken, Aliases: []string{taken}})
		}()
	}
}
