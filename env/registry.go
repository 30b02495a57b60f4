package env

import "github.com/tracesmith/tracesmith/configs/plugin"

// Drivers holds the sandbox drivers. The packages below env/drivers register them.
var Drivers = &plugin.Registry[Driver, struct{}]{What: "sandbox"}

// Sources holds the task sources. Package env/tasks/sources registers them.
var Sources = &plugin.Registry[Source, struct{}]{What: "task source"}
