package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/docker/docker/client"
)

// Names in the archives that fill a volume.
const (
	fillRoot     = "fill"   // the directory that contains all entries
	completeMark = ".whole" // the last file, which marks a complete volume
)

// fingerprint identifies the content of a directory by the names, sizes, modes, link targets and times in it.
func fingerprint(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		target, _ := os.Readlink(p)
		fmt.Fprintf(h, "%q %d %v %d %q\n", p, fi.Size(), fi.Mode(), fi.ModTime().UnixNano(), target)
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)[:12]), err
}

func tarFile(w *tar.Writer, file, name string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fillRoot + "/" + name, Mode: int64(fi.Mode().Perm()) | 0o444, Size: fi.Size()}); err != nil {
		return err
	}
	_, err = io.CopyN(w, f, fi.Size())
	return err
}

// tarDir writes a directory and everything in it, with owners, modes and times.
func tarDir(w *tar.Writer, dir string) error {
	return filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		if !fi.Mode().IsRegular() && !fi.IsDir() && fi.Mode()&fs.ModeSymlink == 0 {
			return nil // sockets, pipes and devices are useless on another machine
		}
		target, _ := os.Readlink(p)
		h, err := tar.FileInfoHeader(fi, target)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		h.Name, h.Uname, h.Gname = path.Join(fillRoot, rel), "", ""
		if err := w.WriteHeader(h); err != nil || !fi.Mode().IsRegular() {
			return err
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.CopyN(w, f, fi.Size())
		return err
	})
}

// maxCopyBack limits the size in bytes of the archive that is copied back from a writable mount.
const maxCopyBack = 16 << 30

// copyDirBack copies the directory at place of a container into dir. It writes nothing outside dir, whatever the
// archive contains.
func copyDirBack(ctx context.Context, cli *client.Client, id, place, dir string) error {
	stream, _, err := cli.CopyFromContainer(ctx, id, place+"/.")
	if err != nil {
		return err
	}
	defer stream.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	in := tar.NewReader(io.LimitReader(stream, maxCopyBack))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := copyEntryBack(root, h, in); err != nil {
			return err
		}
	}
}

func copyEntryBack(root *os.Root, h *tar.Header, in io.Reader) error {
	name := path.Clean(h.Name)
	if name == "." || name == completeMark {
		return nil
	}
	mode := fs.FileMode(h.Mode).Perm()
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, mode|0o700)
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		return root.Link(path.Clean(h.Linkname), name)
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, in)
		return errors.Join(err, f.Close())
	}
	return nil // ignore devices and other special files
}
