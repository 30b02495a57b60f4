package check

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/schemas"
)

var (
	noModule = regexp.MustCompile(`No module named '?([A-Za-z_]\w*)`)
	noPlugin = regexp.MustCompile(`^Missing required plugins: (\S+?)(?:,|$)`)
)

// uncollected says why tests could not be collected, and what to do about it.
func uncollected(ctx context.Context, cfg Config, t schemas.Task, tree env.Tree, run verify.Run) (detail, remedy string, err error) {
	detail = verify.Cause(run.Output)
	cause := detail
	if len(run.Uncollected) > 0 {
		where := strings.TrimPrefix(run.Uncollected[0], "unittest.loader._FailedTest.")
		detail = where + ": " + detail
		if more := len(run.Uncollected) - 1; more > 0 {
			detail += fmt.Sprintf("; and %d more", more)
		}
	}
	if m := noPlugin.FindStringSubmatch(cause); m != nil {
		return detail, installHint(m[1]), nil
	}
	if strings.Contains(cause, "file or directory not found") {
		return detail, "correct the entrypoint", nil
	}
	if strings.Contains(cause, "unrecognized arguments") {
		return detail, "install the plugin that has this option with a setup command, or add -o addopts= to the entrypoint", nil
	}
	m := noModule.FindStringSubmatch(cause)
	if m == nil {
		return detail, "correct the repository, or install what it needs with setup commands", nil
	}
	if m[1] == "pytest" {
		return detail, installHint("pytest") + ", or give an entrypoint that runs unittest", nil
	}
	dir, packaged, err := findModule(ctx, cfg, tree, m[1])
	if err != nil || dir == "" {
		return detail, installHint(m[1]) + ", or the package that provides this module", err
	}
	remedy = fmt.Sprintf("give the entrypoint %q", "PYTHONPATH="+dir+" "+t.Entrypoint)
	if packaged {
		remedy += ", or " + strings.Replace(installHint("--no-deps -e ."), "install it", "install the repository", 1)
	}
	return detail, remedy, nil
}

func installHint(requirement string) string {
	return fmt.Sprintf("install it with the setup command %q", "python3 -m pip install "+requirement)
}

// findModule finds the directory of a repository, other than its root, from which a module can be imported. packaged is
// true if pip can install the repository.
func findModule(ctx context.Context, cfg Config, tree env.Tree, module string) (dir string, packaged bool, err error) {
	sha, err := cfg.Store.Base(ctx, tree)
	if err != nil {
		return "", false, err
	}
	files, err := cfg.Store.Files(ctx, sha)
	if err != nil {
		return "", false, err
	}
	for _, f := range files {
		packaged = packaged || f.Path == "pyproject.toml" || f.Path == "setup.py"
		parent := ""
		switch {
		case path.Base(f.Path) == module+".py":
			parent = path.Dir(f.Path)
		case strings.HasSuffix("/"+f.Path, "/"+module+"/__init__.py"):
			parent = path.Dir(path.Dir(f.Path))
		}
		if parent != "" && parent != "." && (dir == "" || len(parent) < len(dir)) {
			dir = parent
		}
	}
	return dir, packaged, nil
}
