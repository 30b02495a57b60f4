package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"time"
	"archive/tar"
	"encoding/json"

	"github.com/tracesmith/tracesmith/env"
	_ "github.com/tracesmith/tracesmith/env/tasks/sources"
	"github.com/tracesmith/tracesmith/env/tasks/leak"
	"github.com/tracesmith/tracesmith/env/workspace"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	if os.Args[1] == "mutate" {
		for _, d := range os.Args[2:] {
			mutate(d)
		}
		return
	}
	ctx := context.Background()
	cfgJSON := "{}"
	if len(os.Args) > 2 {
		cfgJSON = os.Args[2]
	}
	var with map[string]any
	check(json.Unmarshal([]byte(cfgJSON), &with))
	src, err := env.Sources.Build(os.Args[1], with, struct{}{})
	check(err)
	dir, _ := os.MkdirTemp("", "zm")
	defer os.RemoveAll(dir)
	store, err := workspace.Open(dir)
	check(err)
	n, bad := 0, 0
	begun := time.Now()
	tasks, err := src.Tasks(ctx)
	check(err)
	for _, t := range tasks {
		if t.GoldPatch == "" {
			continue
		}
		tree, err := src.Tree(ctx, t.InstanceID)
		check(err)
		base, err := store.Base(ctx, tree)
		check(err)
		final, err := store.Apply(ctx, base, []byte(t.GoldPatch))
		if err != nil {
			fmt.Println(t.InstanceID, err)
			continue
		}
		changes, err := store.Changed(ctx, base, final)
		check(err)
		var list []leak.Change
		for _, c := range changes {
			x := leak.Change{Path: c.Path}
			if b, ok, _ := store.ReadFile(ctx, base, c.Path); ok {
				s := string(b)
				x.Base = &s
			}
			if b, ok, _ := store.ReadFile(ctx, final, c.Path); ok {
				s := string(b)
				x.Fixed = &s
			}
			list = append(list, x)
		}
		found, err := leak.Search(list, func(each func(string, []byte) error) error {
			return env.Stream(func(w io.Writer) error { return store.Export(ctx, base, w) }, func(r io.Reader) error {
				for in := tar.NewReader(r); ; {
					h, err := in.Next()
					if err == io.EOF {
						return nil
					}
					if err != nil {
						return err
					}
					b, err := io.ReadAll(in)
					if err != nil {
						return err
					}
					if h.Typeflag == tar.TypeReg {
						if err := each(h.Name, b); err != nil {
							return err
						}
					}
				}
			})
		})
		check(err)
		n++
		if len(found) > 0 {
			bad++
			fmt.Println(t.InstanceID, found)
		}
	}
	fmt.Printf("%s: %d tasks, %d with findings, %s\n", os.Args[1], n, bad, time.Since(begun))
}

var _ = json.Marshal

func mutate(dir string) {
	files := map[string][]byte{}
	var names, py []string
	total := 0
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.Contains(p, "/.git/") && !strings.HasSuffix(p, ".pyc") {
			b, _ := os.ReadFile(p)
			rel, _ := filepath.Rel(filepath.Dir(dir), p)
			files[rel] = b
			names = append(names, rel)
			total += len(b)
			if strings.HasSuffix(p, ".py") && len(b) > 500 && !strings.Contains(rel, "test") {
				py = append(py, rel)
			}
		}
		return nil
	})
	if len(py) == 0 {
		return
	}
	rnd := rand.New(rand.NewSource(1))
	swaps := [][2]string{{" == ", " != "}, {" < ", " <= "}, {" + ", " - "}, {" and ", " or "}, {" not ", " "}, {" > ", " >= "}, {" is None", " is not None"}, {"[1:]", "[2:]"}, {" in ", " not in "}, {"True", "False"}, {" 1", " 2"}, {" or ", " and "}, {" 0", " 1"}}
	n, bad := 0, 0
	begun := time.Now()
	for tries := 0; tries < 2000 && n < 25; tries++ {
		name := py[rnd.Intn(len(py))]
		lines := strings.Split(string(files[name]), "\n")
		k := rnd.Intn(len(lines))
		sw := swaps[rnd.Intn(len(swaps))]
		l := strings.TrimSpace(lines[k])
		if !strings.Contains(lines[k], sw[0]) || !strings.HasPrefix(lines[k], "    ") || strings.HasPrefix(l, "#") || !strings.ContainsAny(l, "(=:[") || strings.HasPrefix(l, ":") || strings.HasPrefix(l, ">>>") || strings.Contains(l, "\"") {
			continue
		}
		n++
		fixed := string(files[name])
		lines[k] = strings.Replace(lines[k], sw[0], sw[1], 1)
		base := strings.Join(lines, "\n")
		found, _ := leak.Search([]leak.Change{{Path: name, Base: &base, Fixed: &fixed}}, func(each func(string, []byte) error) error {
			for _, f := range names {
				b := files[f]
				if f == name {
					b = []byte(base)
				}
				if err := each(f, b); err != nil {
					return err
				}
			}
			return nil
		})
		if len(found) > 0 {
			bad++
			fmt.Printf("  %s: %s -> %s\n", name, strings.TrimSpace(strings.Split(fixed, "\n")[k]), found[0])
		}
	}
	fmt.Printf("%s: %d files %.1f MB, %d mutants, %d with findings, %.2fs each\n", filepath.Base(dir), len(names), float64(total)/1e6, n, bad, time.Since(begun).Seconds()/float64(max(n, 1)))
}
