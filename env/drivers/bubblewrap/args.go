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

// arguments is bwrap's command line with the files that it names by descriptor.
type arguments struct {
	args  []string
	files []*os.File
	dirs  []string // made so far
	stage []string // file systems to make before bwrap starts, see guest.StageArg
}

func (a *arguments) add(args ...string) { a.args = append(a.args, args...) }

func (a *arguments) close() {
	for _, f := range a.files {
		_ = f.Close()
	}
}

// dir makes a directory, and those above it, that every user may enter; those that bwrap makes itself are private.
func (a *arguments) dir(p string) {
	for _, d := range append(parents(p), p) {
		if !slices.Contains(a.dirs, d) {
			a.dirs = append(a.dirs, d)
			a.add("--perms", "0755", "--dir", d)
		}
	}
}

// parents lists the directories above p, outermost first, without the root.
func parents(p string) []string {
	var out []string
	for d := path.Dir(p); d != "/" && d != "."; d = path.Dir(d) {
		out = append(out, d)
	}
	slices.Reverse(out)
	return out
}

// bind shows a host path at place.
func (a *arguments) bind(flag, host, place string) {
	if p := path.Dir(place); p != "/" {
		a.dir(p)
	}
	a.add(flag, host, place)
}

// tmpfs mounts a file system of size bytes at place, with files in proportion. A size below 0 is no limit.
func (a *arguments) tmpfs(place, perms string, size int64) {
	a.dir(place)
	files := int64(0) // no limit to the kernel
	if size >= 0 {
		files = drivers.Inodes(size)
	}
	a.add("--bind", guest.StagePlace(len(a.stage)), place)
	a.stage = append(a.stage, fmt.Sprintf("%d:%d:%s", max(size, 0), files, perms))
}

// file puts a small read-only file at place.
func (a *arguments) file(place, content string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	a.files = append(a.files, r)
	a.add("--perms", "0644", "--file", strconv.Itoa(2+len(a.files)), place)
	_, err = w.WriteString(content) // much less than a pipe holds
	return errors.Join(err, w.Close())
}
