// Package check asks of one task whether it is sound: whether its tests fail
// because of the bug and pass with the gold patch, however often they run, under
// whatever hash seed and in whatever order; whether only a fix resolves it;
// whether the debugger answers; and whether the sandbox gives the fix away.
//
// Task checks a task, Base a healthy repository that bugs shall be put into. All
// runs of tests are those of env/verify, in sandboxes of their own.
//
// It may import env, env/verify, env/workspace and schemas.
package check
