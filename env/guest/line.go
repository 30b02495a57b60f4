package guest

import (
	"errors"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// line connects a program to its terminal.
type line struct {
	in, out *os.File // the guest's side
	child   [3]*os.File
	pty     bool
}

// started closes the program's side in the guest.
func (l *line) started() {
	for i, f := range l.child {
		if i == 0 || f != l.child[i-1] {
			_ = f.Close()
		}
	}
}

func (l *line) close() {
	_ = l.in.Close()
	if l.out != l.in {
		_ = l.out.Close()
	}
}

// foreground is the process group that reads the terminal, or the leader's if the line is
// a pair of pipes.
func (l *line) foreground(leader int) int {
	if !l.pty {
		return leader
	}
	group := 0
	raw, err := l.in.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if g, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP); err == nil {
			group = g
		}
	})
	return group
}

func openPipes() (*line, error) {
	inR, inW, err := pipe(onlyHeld)
	if err != nil {
		return nil, err
	}
	outR, outW, err := pipe(onlyWrite)
	if err != nil {
		return nil, errors.Join(err, inR.Close(), inW.Close())
	}
	return &line{in: inW, out: outR, child: [3]*os.File{inR, outW, outW}}, nil
}

// openPTY makes a pseudo terminal that passes bytes through unchanged: no echo,
// no line editing, no line length, no control characters, no CR before LF.
func openPTY() (*line, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*line, error) { return nil, errors.Join(err, master.Close(), slave.Close()) }
	mode, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		return fail(err)
	}
	mode.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	mode.Oflag &^= unix.OPOST
	mode.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, mode); err != nil {
		return fail(err)
	}
	// The runtime can poll this descriptor, so that closing it ends a read.
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	if err := errors.Join(master.Close(), unix.SetNonblock(fd, true)); err != nil {
		return nil, errors.Join(err, slave.Close(), unix.Close(fd))
	}
	m := os.NewFile(uintptr(fd), "terminal")
	return &line{in: m, out: m, child: [3]*os.File{slave, slave, slave}, pty: true}, nil
}
