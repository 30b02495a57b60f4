package pipeline

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"sync"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/pipeline/audit/closure"
	"github.com/tracesmith/tracesmith/pipeline/metrics"
)

// maxSource is the size in bytes above which Python files are skipped, because they are probably
// generated.
const maxSource = 4 << 20

// repository is what the metrics need of a repository.
type repository struct {
	functions map[string][]metrics.Function // of the Python files, by path
	names     map[string]bool               // identifiers in the Python files
}

// functionCache keeps what was read from the repositories of the last tasks, because the attempts at a
// task follow each other. It is safe for concurrent use.
type functionCache struct {
	mu   sync.Mutex
	last []cachedFunctions // the most recent one first
}

type cachedFunctions struct {
	tree string
	read func() (repository, error)
}

const maxCachedTrees = 8

// get reads the Python files of a tree.
func (c *functionCache) get(tree env.Tree) (repository, error) {
	c.mu.Lock()
	i := slices.IndexFunc(c.last, func(x cachedFunctions) bool { return x.tree == tree.SHA256() })
	entry := cachedFunctions{tree.SHA256(), sync.OnceValues(func() (repository, error) { return readRepository(tree) })}
	if i >= 0 {
		entry = c.last[i]
		c.last = slices.Delete(c.last, i, i+1)
	}
	c.last = slices.Insert(c.last, 0, entry)
	c.last = c.last[:min(len(c.last), maxCachedTrees)]
	c.mu.Unlock()
	out, err := entry.read()
	if err != nil {
		c.mu.Lock() // try again for the next job
		c.last = slices.DeleteFunc(c.last, func(x cachedFunctions) bool { return x.tree == entry.tree })
		c.mu.Unlock()
	}
	return out, err
}

func readRepository(tree env.Tree) (repository, error) {
	out := repository{map[string][]metrics.Function{}, map[string]bool{}}
	err := env.Stream(tree.WriteTar, func(r io.Reader) error {
		files := tar.NewReader(r)
		for {
			h, err := files.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if h.Typeflag != tar.TypeReg || path.Ext(h.Name) != ".py" || h.Size > maxSource {
				continue
			}
			source, err := io.ReadAll(files)
			if err != nil {
				return err
			}
			out.functions[path.Clean(h.Name)] = metrics.Functions(string(source))
			closure.Names(string(source), out.names)
		}
	})
	if err != nil {
		return repository{}, fmt.Errorf("reading the functions of the repository: %w", err)
	}
	return out, nil
}
