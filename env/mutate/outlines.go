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

// maxSource is the size in bytes of the largest file that the mutator reads.
const maxSource = 4 << 20

// Outlines returns the functions of each Python text by its name. It parses the texts in a new sandbox,
// which contains one text at a time. It skips texts that do not parse.
func Outlines(ctx context.Context, d env.Driver, spec env.SandboxSpec, texts map[string][]byte) (
	out map[string][]FunctionOutline, skipped []Skipped, err error,
) {
	if len(texts) == 0 {
		return nil, nil, nil
	}
	sb, err := d.Start(ctx, spec)
	if err != nil {
		return nil, nil, fmt.Errorf("starting a %s sandbox: %w", d.Name(), err)
	}
	defer func() {
		if closeErr := sb.Close(context.WithoutCancel(ctx)); err == nil && closeErr != nil && !errors.Is(closeErr, env.ErrSandboxDied) {
			err = fmt.Errorf("closing sandbox: %w", closeErr)
		}
	}()
	m, err := Start(ctx, Config{Sandbox: sb, Workdir: spec.Workdir})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, m.Close(ctx)) }()
	const file = "text.py"
	out = map[string][]FunctionOutline{}
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
		if errors.Is(err, errNoAnswer) && ctx.Err() == nil {
			skipped = append(skipped, Skipped{name, errNoAnswer.Error()})
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
