package mutate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/tracesmith/tracesmith/env"
)

// maxSource is the size of the largest file that the program reads, in bytes.
const maxSource = 4 << 20

// Outlines lists the functions of Python texts, by the name of the text, in a sandbox of its own that
// contains one text at a time. It skips texts that do not parse, and says why.
func Outlines(ctx context.Context, d env.Driver, spec env.SandboxSpec, texts map[string][]byte) (out map[string][]Outlined, skipped []Skipped, err error) {
	if len(texts) == 0 {
		return nil, nil, nil
	}
	sb, err := d.Start(ctx, spec)
	if err != nil {
		return nil, nil, fmt.Errorf("starting a %s sandbox: %w", d.Name(), err)
	}
	defer func() {
		if closing := sb.Close(context.WithoutCancel(ctx)); err == nil && closing != nil && !errors.Is(closing, env.ErrSandboxDied) {
			err = fmt.Errorf("closing sandbox: %w", closing)
		}
	}()
	m, err := Start(ctx, Config{Sandbox: sb, Workdir: spec.Workdir})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, m.Close(ctx)) }()
	const file = "text.py"
	out = map[string][]Outlined{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if len(texts[name]) > maxSource {
			skipped = append(skipped, Skipped{name, fmt.Sprintf("it has more than %d MB", maxSource>>20)})
			continue
		}
		if err := sb.WriteFile(ctx, path.Join(env.WorkdirOf(sb, spec.Workdir), file), texts[name], 0o644); err != nil {
			return nil, nil, fmt.Errorf("placing %s: %w", name, err)
		}
		list, err := m.Outline(ctx, file)
		if refused, ok := errors.AsType[*RefusedError](err); ok {
			skipped = append(skipped, Skipped{name, refused.Why})
			continue
		}
		if errors.Is(err, errGone) && ctx.Err() == nil {
			skipped = append(skipped, Skipped{name, errGone.Error()})
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		for i := range list {
			list[i].File = name
		}
		out[name] = list
	}
	return out, skipped, nil
}
