// Package benchmarks holds the task sources: where bugs come from. Each file
// registers one kind: builtin (a set embedded in the binary), dir (a directory
// of tasks in the same layout) and path (one program as it lies on disk).
//
// A task directory holds
//
//	task.yaml    what the agent is told, how the program runs, how a fix is judged
//	repo/        the program, tests included
//	gold.patch   optional: unified diff from repo/ to the fixed program
//
// It may import env, env/tree, schemas and configs/plugin.
package benchmarks

// DefaultTestFiles are the paths restored before grading when a task names
// none: tests and what configures them. A pattern without a slash matches the
// base name in any directory; "dir/**" matches everything below dir.
func DefaultTestFiles() []string {
	return []string{
		"tests/**", "test_*.py", "*_test.py", "conftest.py",
		"pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml",
	}
}
