package tools

import "github.com/tracesmith/tracesmith/configs/plugin"

// Registry lists the tools that exist. tools/builtin fills it.
var Registry = &plugin.Registry[Tool, struct{}]{What: "tool"}
