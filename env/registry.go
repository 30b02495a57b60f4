package env

import "github.com/tracesmith/tracesmith/configs/plugin"

// Drivers lists the sandbox kinds that exist. The packages below env/drivers fill it.
var Drivers = &plugin.Registry[Driver, struct{}]{What: "sandbox"}

// Sources lists the task sources that exist. env/tasks/sources fills it.
var Sources = &plugin.Registry[Source, struct{}]{What: "task source"}
