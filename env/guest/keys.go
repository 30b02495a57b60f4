package guest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// keyTimeout is how long a process may take to read its key.
const keyTimeout = time.Second

// keyring gives out the keys of one command (see env.Keys). Before a process gets its key,
// it gets its own tag (see scope). Its children inherit the tag, and no process can
// restore the old one, so none of them can get another key.
type keyring struct {
	key     tagKey
	killer  *killer
	sc      *scope // of the command
	keys    env.Keys
	socket  *net.UnixListener
	serving sync.WaitGroup
	holders []holder // only serve may use it until serve returns
}

type holder struct {
	process
	outlived bool // it was still running when the next process asked for a key
}

// giveKeys starts giving out the keys that r asks for. It returns nil if r asks for none.
func giveKeys(r *guestpb.RunRequest, key tagKey, killer *killer, sc *scope) (*keyring, error) {
	if r.KeysName == "" {
		return nil, nil
	}
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@" + r.KeysName, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listening for processes that ask for keys: %w", err)
	}
	k := &keyring{key: key, killer: killer, sc: sc, keys: env.Keys{Name: r.KeysName, Secret: r.KeysSecret}, socket: socket}
	k.serving.Go(k.serve)
	return k, nil
}

// stop stops serving keys and returns the value of RunResponse.Keys.
func (k *keyring) stop() []bool {
	if k == nil {
		return nil
	}
	_ = k.socket.Close()
	k.serving.Wait()
	out := make([]bool, len(k.holders))
	for i, h := range k.holders {
		out[i] = h.outlived
	}
	return out
}

func (k *keyring) serve() {
	for {
		conn, err := k.socket.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // probably out of file descriptors: retry
			time.Sleep(time.Millisecond)
			continue
		}
		if key := k.issue(conn); key != "" {
			_ = conn.SetWriteDeadline(time.Now().Add(keyTimeout))
			_, _ = conn.Write([]byte(key)) // fails if the process has ended, which does not matter
		}
		_ = conn.Close()
	}
}

// issue returns the line with the next key for the process that opened conn, or "" to refuse
// it. First, issue kills the processes that earlier holders left behind when they ended.
func (k *keyring) issue(conn *net.UnixConn) string {
	p, ok := peerProcess(conn)
	if !ok || p.tag != k.sc.tag {
		return ""
	}
	for i := range k.holders {
		h := &k.holders[i]
		if now, alive := readStat(h.pid); alive && now.start == h.start {
			h.outlived = h.outlived || i == len(k.holders)-1
			continue
		}
		hasTag := func(tag uint64) bool { return tag == h.tag }
		if len(processes(hasTag)) == 0 {
			continue
		}
		if !k.killer.kill(hasTag, spareNone) {
			return ""
		}
	}
	p.tag = k.killer.scopes.extend(k.sc)
	if k.key.prlimit(p.pid, unix.RLIMIT_RTTIME, unix.Rlimit{Cur: p.tag, Max: p.tag}) != nil {
		return ""
	}
	k.holders = append(k.holders, holder{process: p})
	n := len(k.holders) - 1
	return strconv.Itoa(n) + " " + hex.EncodeToString(k.keys.Key(n)) + "\n"
}

// peerProcess returns the process that opened conn, with its tag. It returns false if it
// cannot identify the process, for example because it has ended.
func peerProcess(conn *net.UnixConn) (process, bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return process{}, false
	}
	var peer *unix.Ucred
	if raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }) != nil || err != nil {
		return process{}, false
	}
	p, alive := readStat(int(peer.Pid))
	tag, known := tagOf(int(peer.Pid))
	p.tag = tag
	return p, alive && known
}

// sealedFile returns an in-memory file with this content that no process can change.
func sealedFile(key tagKey, content []byte) (*os.File, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := key.memfd(flags | unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = key.memfd(flags)
	}
	if err != nil {
		return nil, fmt.Errorf("creating a sealed file: %w", err)
	}
	f := os.NewFile(uintptr(fd), "sealed")
	_, err = f.Write(content)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("creating a sealed file: %w", err), f.Close())
	}
	return f, nil
}
