// Package sources has the task sources. Each source is one file: builtin (a set embedded in the
// binary), dir (a directory of tasks in the same layout), path (one program on disk), file (a task
// file, see env/tasks/taskfile), and one for each public benchmark on top of dataset.go and
// folders.go.
//
// A task directory holds
//
//	task.yaml    the instructions, how the program runs, how a fix is verified
//	repo/        the program, tests included
//	gold.patch   optional: unified diff from repo/ to the fixed program
package sources
