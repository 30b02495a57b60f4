package tape

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/tracesmith/tracesmith/schemas"
)

// Bounds of what is read: a file is foreign input.
const (
	maxHead = 64 << 10
	maxBody = 128 << 20
)

// errEnd: there is no further whole record.
var errEnd = errors.New("no further record")

// reader goes through a file record by record and knows what the writer knew.
type reader struct {
	in      *bufio.Reader
	end     int64 // after the last whole record
	records int
	recent  recent

	request, response []byte // of the last record
	lastHash          string
}

func newReader(in io.Reader) *reader { return &reader{in: bufio.NewReaderSize(in, maxHead)} }

func (r *reader) next() (head, error) {
	line, err := r.in.ReadSlice('\n')
	if err != nil {
		return head{}, torn(err)
	}
	read := int64(len(line))
	var h head
	if err := json.Unmarshal(line, &h); err != nil {
		return head{}, fmt.Errorf("record %d: %w", r.records, err)
	}
	if h.NewBytes < 0 || h.ResponseBytes < 0 || h.NewBytes > maxBody || h.ResponseBytes > maxBody {
		return head{}, fmt.Errorf("record %d: impossible sizes", r.records)
	}
	frames, err := io.ReadAll(io.LimitReader(r.in, int64(h.NewBytes+h.ResponseBytes+1)))
	if err != nil {
		return head{}, torn(err)
	}
	if len(frames) < h.NewBytes+h.ResponseBytes+1 {
		return head{}, errEnd
	}
	if err := r.unpack(h, frames); err != nil {
		return head{}, fmt.Errorf("record %d: %w", r.records, err)
	}
	r.recent.add(r.records, r.request)
	r.records++
	r.end += read + int64(len(frames))
	r.lastHash = h.Response
	return h, nil
}

func (r *reader) unpack(h head, frames []byte) error {
	part, err := unpack(frames[:h.NewBytes])
	if err != nil {
		return err
	}
	if r.request, err = r.recent.join(h, part); err != nil {
		return err
	}
	if schemas.HashBytes(r.request) != cmp.Or(h.KeptRequest, h.Request) {
		return errors.New("the request is damaged")
	}
	switch {
	case h.Response == "":
		r.response = nil
	case !h.SameResponse:
		if r.response, err = unpack(frames[h.NewBytes : h.NewBytes+h.ResponseBytes]); err != nil {
			return err
		}
	}
	if h.Response != "" && schemas.HashBytes(r.response) != cmp.Or(h.KeptResponse, h.Response) {
		return errors.New("the response is damaged")
	}
	return nil
}

// torn tells the end of a file from trouble with reading it.
func torn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errEnd
	}
	return err
}

// codec is shared: frames are small, and each coder keeps buffers.
var codec = sync.OnceValues(func() (*zstd.Encoder, *zstd.Decoder) {
	enc, err := zstd.NewWriter(nil, zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // constant options
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxBody), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(err) // constant options
	}
	return enc, dec
})

func pack(body []byte) []byte {
	if len(body) == 0 {
		return nil
	}
	enc, _ := codec()
	return enc.EncodeAll(body, nil)
}

func unpack(frame []byte) ([]byte, error) {
	if len(frame) == 0 {
		return []byte{}, nil
	}
	_, dec := codec()
	return dec.DecodeAll(frame, nil)
}
