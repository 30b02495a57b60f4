package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/tools"
	"github.com/tracesmith/tracesmith/tools/mcp"
)

// Host holds what components need from the process that they run in.
type Host struct {
	Getenv  func(string) string
	Environ []string  // NAME=value; values of secret names are redacted
	Warn    io.Writer // lines for the user
	Version string
}

// openToolbox starts the MCP servers and makes the tool set from agent.tools and the
// servers' tools.
func (w *Workbench) openToolbox(ctx context.Context, host Host) error {
	var list []tools.Tool
	for _, item := range w.cfg.Agent.Tools {
		t, err := tools.Registry.Build(item.Name, item.With, struct{}{})
		if err != nil {
			return fmt.Errorf("agent.tools: %w", err)
		}
		list = append(list, t)
	}
	where := "agent.tools"
	if len(w.cfg.MCP) > 0 {
		var err error
		if w.servers, err = openServers(ctx, w.cfg.MCP, host); err != nil {
			return err
		}
		list = append(list, w.servers.Tools()...)
		where = "agent.tools and mcp (choose another prefix)"
	}
	var err error
	if w.Toolbox, err = tools.NewSet(list); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}

func openServers(ctx context.Context, cfg configs.MCP, host Host) (*mcp.Servers, error) {
	var list []mcp.Config
	for _, id := range slices.Sorted(maps.Keys(cfg)) {
		s := cfg[id]
		list = append(list, mcp.Config{
			ID: id, Command: s.Command, Args: s.Args, Env: s.Env,
			URL: s.URL, Headers: s.Headers, SSE: s.Transport == "sse", AllowPrivate: s.AllowPrivate,
			Prefix: *s.Prefix, Tools: s.Tools, Timeout: s.Timeout, StartTimeout: s.StartTimeout,
			PerEpisode: s.Scope == "episode", Optional: s.Optional,
		})
	}
	var mu sync.Mutex
	servers, err := mcp.Open(ctx, list, mcp.Deps{
		Getenv: host.Getenv, Version: host.Version,
		Warn: func(text string) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintln(host.Warn, "warning: "+text)
		},
	})
	switch {
	case err == nil:
		return servers, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, mcp.ErrNoVariable):
		return nil, &pipeline.StopError{Code: 4, Err: err, Remedy: "set that environment variable"}
	}
	return nil, &pipeline.StopError{Code: 7, Err: err, Remedy: "check the server by hand, or let the run continue without it with optional: true"}
}

// mcpIdentity returns the settings of the servers that must stay the same when a run
// directory is used again. The hash of the tool set covers the servers' tools.
func mcpIdentity(cfg configs.MCP) string {
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(cfg)) {
		s := cfg[id]
		parts = append(parts, strings.TrimSpace(id+" "+s.Scope+" "+s.Transport+" "+s.URL+strings.Join(append([]string{s.Command}, s.Args...), " ")))
	}
	return strings.Join(parts, "; ")
}

// mcpSecrets returns the values of host variables that the configuration passes to servers.
func mcpSecrets(cfg configs.MCP, getenv func(string) string) []string {
	var out []string
	for _, s := range cfg {
		for _, from := range slices.Concat(slices.Collect(maps.Values(s.Env)), slices.Collect(maps.Values(s.Headers))) {
			if name, ok := strings.CutPrefix(from[strings.LastIndexByte(from, ' ')+1:], "env:"); ok && getenv(name) != "" {
				out = append(out, getenv(name))
			}
		}
	}
	slices.Sort(out)
	return out
}
