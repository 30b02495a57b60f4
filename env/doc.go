// Package env is the debugging environment that an agent works in. Env resets a
// repository, runs one tool call per step and returns the final patch. The package
// also declares the interfaces that Env builds on: Driver, Sandbox and Terminal isolate
// programs, Source and Tree supply tasks and their files, Debugger runs pdb, Workspace
// records changes to files, and Verifier decides whether a patch resolves the task.
//
// The drivers are in env/drivers, the service inside the sandbox in env/guest, the
// debugger in env/pdb, the task sources in env/tasks/sources and the verifier in
// env/verify. Package tools imports env, so Env calls the tools through Toolbox.
package env
