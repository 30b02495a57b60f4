// Package sources implements the task sources. Each source has its own file: builtin (tasks embedded in the binary),
// dir (a directory of task directories), path (one program on disk), file (a task file, see env/tasks/taskfile), free
// (any image or directory, without tests), and one source for each public benchmark, based on dataset.go or folders.go.
//
// A task directory contains
//
//	task.yaml    the instructions, how the program runs, how a fix is verified
//	repo/        the program, including its tests
//	gold.patch   optional: unified diff from repo/ to the fixed program
package sources
