package tools

import "github.com/tracesmith/tracesmith/configs/plugin"

// Registry holds the kinds of tools. Package builtin fills it.
var Registry = &plugin.Registry[Tool, struct{}]{What: "tool"}
