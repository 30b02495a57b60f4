package guest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// frame returns one message of the host as ttrpc sends it: length, stream, type, flags, body.
func frame(f *testing.F, stream uint32, method string, body proto.Message) []byte {
	f.Helper()
	payload, err := proto.Marshal(body)
	if err != nil {
		f.Fatal(err)
	}
	raw, err := proto.Marshal(&ttrpc.Request{Service: "tracesmith.guest.Guest", Method: method, Payload: payload})
	if err != nil {
		f.Fatal(err)
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(raw)))
	head = binary.BigEndian.AppendUint32(head, stream)
	return append(append(head, 1, 0), raw...)
}

// unconfiguredServer is a guest that refuses Hello, so that no other call affects this machine.
type unconfiguredServer struct{ *server }

func (unconfiguredServer) Hello(context.Context, *guestpb.HelloRequest) (*guestpb.HelloResponse, error) {
	return nil, errors.New("refused by the test")
}

// FuzzHostStream sends arbitrary bytes as the calls of a host.
func FuzzHostStream(f *testing.F) {
	f.Add(frame(f, 1, "Hello", &guestpb.HelloRequest{Workdir: []byte("/w"), Env: [][]byte{[]byte("A=b")}}))
	f.Add(append(frame(f, 1, "Run", &guestpb.RunRequest{Id: 1, Args: [][]byte{[]byte("x")}, TimeoutNs: 1}),
		frame(f, 3, "Cancel", &guestpb.CancelRequest{Id: 1})...))
	f.Add(frame(f, 1, "Open", &guestpb.OpenRequest{Id: 1, Args: [][]byte{[]byte("x")}, Pty: true}))
	f.Add(frame(f, 1, "Push", &guestpb.PushRequest{Id: 1, Path: []byte("x"), Data: []byte("y"), Last: true}))
	f.Add(frame(f, 1, "Read", &guestpb.ReadRequest{Id: 1, WaitNs: -1}))
	f.Add(frame(f, 1, "Search", &guestpb.SearchRequest{}))
	f.Add([]byte("\xff\xff\xff\xff\x00\x00\x00\x01\x01\x00"))
	f.Fuzz(func(t *testing.T, input []byte) {
		hostEnd, guestEnd := net.Pipe()
		rpc, err := ttrpc.NewServer()
		if err != nil {
			t.Fatal(err)
		}
		guestpb.RegisterGuestService(rpc, unconfiguredServer{newServer(tagKey{}, 0)})
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			_, _ = io.Copy(io.Discard, hostEnd)
		}()
		l := singleConn{make(chan net.Conn, 1), make(chan struct{})}
		l.conn <- guestEnd
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = rpc.Serve(t.Context(), l)
		}()
		_, _ = hostEnd.Write(input) // fails if the guest has closed the connection
		_ = hostEnd.Close()
		close(l.ended)
		<-served
		_ = rpc.Close()
		<-drained
	})
}

// FuzzAnswers sends arbitrary messages as the answers to single calls.
func FuzzAnswers(f *testing.F) {
	add := func(kind byte, m proto.Message) {
		raw, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(kind, raw)
	}
	add(0, &guestpb.RunResponse{Output: []byte("abc"), Length: 3, Head: 3, Total: 3, ExitCode: 1, Limit: "memory"})
	add(0, &guestpb.RunResponse{Output: []byte("abc"), Head: -1, Total: 1 << 62, RestTransfer: 7})
	add(1, &guestpb.PullResponse{Data: []byte("abc"), Eof: true, Total: -3})
	add(2, &guestpb.WalkResponse{Entries: []*guestpb.Entry{{}, nil}})
	add(3, &guestpb.SearchResponse{Lines: []*guestpb.Line{{}}})
	f.Fuzz(func(t *testing.T, kind byte, raw []byte) {
		l := &fakeGuest{run: func() (*guestpb.RunResponse, error) { return &guestpb.RunResponse{}, nil }, walk: &guestpb.WalkResponse{}, search: &guestpb.SearchResponse{}}
		pulled := &guestpb.PullResponse{Eof: true}
		l.pull = func() (*guestpb.PullResponse, error) { return pulled, nil }
		var err error
		switch kind % 4 {
		case 0:
			r := &guestpb.RunResponse{}
			err = proto.Unmarshal(raw, r)
			l.run = func() (*guestpb.RunResponse, error) { return r, nil }
		case 1:
			err = proto.Unmarshal(raw, pulled)
		case 2:
			err = proto.Unmarshal(raw, l.walk)
		case 3:
			err = proto.Unmarshal(raw, l.search)
		}
		if err != nil {
			return // not a valid message
		}
		c := connect(t, l)
		r, err := c.Run(t.Context(), env.Command{Args: []string{"x"}, MaxOutput: 100})
		if err == nil && (len(r.Output) > 100 || r.Head < 0 || r.Head > len(r.Output) || r.Total < int64(len(r.Output))) {
			t.Errorf("accepted %+v", r)
		}
		if data, _, err := c.ReadFile(t.Context(), "x", 100); err == nil && len(data) > 100 {
			t.Errorf("%d bytes of a file", len(data))
		}
		_, _ = c.Walk(t.Context(), env.WalkSpec{})
		_, _ = c.Search(t.Context(), env.SearchSpec{})
		_ = c.TarOut(t.Context(), "x", &bytes.Buffer{})
	})
}
