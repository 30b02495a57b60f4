package bubblewrap

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"

	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/env/guest"
)

// arguments is the command line of bwrap, with the files that it refers to by descriptor.
type arguments struct {
	args  []string
	files []*os.File
	dirs  []string // directories that the command line creates so far
	stage []string // file systems to mount before bwrap starts, see guest.StageArg
}

func (a *arguments) add(args ...string) { a.args = append(a.args, args...) }

func (a *arguments) close() {
	for _, f := range a.files {
		_ = f.Close()
	}
}

// addDir creates a directory and those above it. Every user may enter them, unlike directories that bwrap creates
// implicitly.
func (a *arguments) addDir(p string) {
	for _, d := range append(parents(p), p) {
		if !slices.Contains(a.dirs, d) {
			a.dirs = append(a.dirs, d)
			a.add("--perms", "0755", "--dir", d)
		}
	}
}

// parents returns the directories above p, outermost first, without the root.
func parents(p string) []string {
	var out []string
	for d := path.Dir(p); d != "/" && d != "."; d = path.Dir(d) {
		out = append(out, d)
	}
	slices.Reverse(out)
	return out
}

// addBind mounts a host path at dest.
func (a *arguments) addBind(flag, host, dest string) {
	if p := path.Dir(dest); p != "/" {
		a.addDir(p)
	}
	a.add(flag, host, dest)
}

// addTmpfs mounts a file system of size bytes at dest. Its limit on the number of files depends on size. A negative
// size means no limits.
func (a *arguments) addTmpfs(dest, perms string, size int64) {
	a.addDir(dest)
	files := int64(0) // to the kernel, 0 means no limit
	if size >= 0 {
		files = drivers.InodeLimit(size)
	}
	a.add("--bind", guest.StageMountPoint(len(a.stage)), dest)
	a.stage = append(a.stage, fmt.Sprintf("%d:%d:%s", max(size, 0), files, perms))
}

// addFile creates a small read-only file at dest.
func (a *arguments) addFile(dest, content string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	a.files = append(a.files, r)
	a.add("--perms", "0644", "--file", strconv.Itoa(2+len(a.files)), dest)
	_, err = w.WriteString(content) // does not block, because a pipe can hold much more
	return errors.Join(err, w.Close())
}
