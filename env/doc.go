// Package env is the debugging environment: contracts for whatever isolates a
// program (Driver, Sandbox, Terminal), for where tasks come from (Source), and
// Env, which offers reset / step / close over them.
//
// Drivers live below env/drivers, the in-sandbox service
// in env/guest, the debugger in env/pdb, task sources in env/tasks/sources, the
// verifier in env/verify; tools (which import env) reach Env through Toolbox.
package env
