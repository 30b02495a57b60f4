// Package sources holds the task sources: where bugs come from. Each file
// registers one kind: builtin (a set embedded in the binary), dir (a directory
// of tasks in the same layout), path (one program as it lies on disk) and file (a
// task file, see env/tasks/taskfile).
//
// A task directory holds
//
//	task.yaml    what the agent is told, how the program runs, how a fix is judged
//	repo/        the program, tests included
//	gold.patch   optional: unified diff from repo/ to the fixed program
//
// It may import env, env/tasks/taskfile, env/workspace, schemas, sinks/formats and configs/plugin.
package sources
