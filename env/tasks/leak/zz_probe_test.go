package leak

import (
	"archive/tar"
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

type probe struct {
	ID, Path, Base, Fixed, Line, Func, Op, Tree string
	Plants                                      map[string][2]string
}

func loadTree(t *testing.T, name string) repo {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := repo{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			b, _ := io.ReadAll(r)
			out[strings.TrimPrefix(h.Name, "./")] = string(b)
		}
	}
}

func TestProbe(t *testing.T) {
	missed, found, kinds := map[string][]string{}, map[string]int{}, map[string]int{}
	alarms, total := 0, 0
	for _, file := range strings.Split(os.Getenv("PROBE"), ":") {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		trees := map[string]repo{}
		in := bufio.NewReaderSize(f, 1<<26)
		for {
			line, err := in.ReadBytes('\n')
			if len(bytes.TrimSpace(line)) > 0 {
				var p probe
				if err := json.Unmarshal(line, &p); err != nil {
					t.Fatal(err)
				}
				tree := filepath.Join(filepath.Dir(file), p.Tree)
				if trees[tree] == nil {
					trees[tree] = loadTree(t, tree)
				}
				base := trees[tree].with(p.Path, p.Base)
				total++
				clean, err := Search(changesOf(p.Path, p.Base, p.Fixed), base.files)
				if err != nil {
					t.Fatal(err)
				}
				dirty := map[string]bool{}
				if len(clean) > 0 {
					alarms++
					for _, c := range clean {
						dirty[c.Path] = true
						kinds[c.Kind]++
						fmt.Printf("ALARM %s %s | fix line: %s\n", p.ID, c, p.Line)
					}
				}
				if os.Getenv("PROBE_CLEAN") != "" {
					if err != nil {
						break
					}
					continue
				}
				for form, x := range p.Plants {
					data, _ := base64.StdEncoding.DecodeString(x[1])
					// New reads the planted file as well.
					got, err := Search(changesOf(p.Path, p.Base, p.Fixed), base.with(x[0], string(data)).files)
					if err != nil {
						t.Fatal(err)
					}
					if slices.ContainsFunc(got, func(f Finding) bool { return f.Path == x[0] }) {
						found[form]++
					} else {
						missed[form] = append(missed[form], p.ID)
					}
				}
			}
			if err != nil {
				break
			}
		}
	}
	fmt.Printf("%d tasks, %d with alarms %v\n", total, alarms, kinds)
	var names []string
	for n := range missed {
		names = append(names, n)
	}
	slices.Sort(names)
	sum, all := 0, 0
	for _, n := range found {
		all += n
	}
	for _, n := range names {
		sum += len(missed[n])
		fmt.Printf("MISSED %-24s %d of %d  %v\n", n, len(missed[n]), len(missed[n])+found[n], missed[n][:min(4, len(missed[n]))])
	}
	fmt.Printf("missed %d of %d\n", sum, sum+all)
}
