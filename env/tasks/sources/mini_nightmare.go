package sources

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	register("mini_nightmare", "ten small programs that are hard to fix without a debugger", nil, func(c CollectionConfig) (env.Source, error) {
		return &taskSource{name: "mini_nightmare", read: func(ctx context.Context) ([]placedTask, error) { return readNightmare(ctx, c) }}, nil
	})
}

var nightmareNames = []string{
	"config", "counter", "grader", "pandas_dataframe", "patcher", "purr", "scientific_calculator", "shopping_cart", "sum_tree", "tomorrow_date",
}

func readNightmare(ctx context.Context, cfg CollectionConfig) ([]placedTask, error) {
	const remedy = "unpack mini_nightmare.zip of debug-gym's release 1.0.0 anew"
	all, err := openCollection(ctx, cfg, "set \"path\" to mini_nightmare.zip of debug-gym's release 1.0.0, or to the directory that it unpacks to")
	if err != nil {
		return nil, err
	}
	paths := all.Paths()
	root := ""
	if i := slices.IndexFunc(paths, func(p string) bool { return p == "config/test.py" || strings.HasSuffix(p, "/config/test.py") }); i >= 0 {
		root = strings.TrimSuffix(paths[i], "config/test.py")
	}
	var list []placedTask
	for _, name := range nightmareNames {
		for _, file := range []string{"test.py", name + "_code.py"} {
			if _, _, _, err := all.File(root + name + "/" + file); err != nil {
				return nil, fmt.Errorf("%s lacks %s: %s", cfg.Path, root+name+"/"+file, remedy)
			}
		}
		files, err := all.Sub(root+name, func(p string) bool { return !strings.HasPrefix(p, ".debug") })
		if err != nil {
			return nil, err
		}
		t := schemas.Task{
			InstanceID: name, Repo: "microsoft/debug-gym", License: "MIT", Entrypoint: "python3 -m pytest --tb=short -q test.py",
			Instructions: "The program does not behave as intended. Find the cause, then edit the code to fix it. " +
				"The bug may not be in the code that you see first.\n",
			Tests: schemas.TestSpec{Files: []string{"test.py", "conftest.py", "pytest.ini"}},
		}
		if name == "pandas_dataframe" {
			t.Setup = []string{"python3 -c 'import pandas' 2>/dev/null || python3 -m pip install -q pandas"}
		}
		list = append(list, newPlacedTask(t, "mini_nightmare", files))
	}
	return cfg.pick(list)
}
