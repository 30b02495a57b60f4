package tape

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/tracesmith/tracesmith/schemas"
)

// Limits of what is read, because a file is untrusted input.
const (
	maxHead = 64 << 10
	maxBody = 64 << 20
	window  = 1 << 20 // of a zstd frame
)

// errEnd means that there is no further complete record.
var errEnd = errors.New("no further record")

// reader reads a file record by record and reconstructs the state of the writer.
type reader struct {
	in      *bufio.Reader
	end     int64 // offset after the last complete record
	records int
	recent  recent

	request, response []byte // of the last record
	lastHash          string

	frames *zstd.Decoder
}

func newReader(in io.Reader) *reader {
	// With a concurrency of 1 the decoder starts no goroutines, so it need not be closed.
	frames, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(err) // constant options
	}
	return &reader{in: bufio.NewReaderSize(in, maxHead), frames: frames}
}

// next reads the next record into r.request and r.response. It returns errEnd if there is no
// further complete record.
func (r *reader) next() (recordHeader, error) {
	line, err := r.in.ReadSlice('\n')
	if err != nil {
		return recordHeader{}, endOrError(err)
	}
	read := int64(len(line))
	var h recordHeader
	if err := json.Unmarshal(line, &h); err != nil {
		return recordHeader{}, fmt.Errorf("record %d: %w", r.records, err)
	}
	if h.NewBytes < 0 || h.ResponseBytes < 0 || h.NewBytes > maxBody || h.ResponseBytes > maxBody {
		return recordHeader{}, fmt.Errorf("record %d: impossible sizes", r.records)
	}
	frames, err := io.ReadAll(io.LimitReader(r.in, int64(h.NewBytes+h.ResponseBytes+1)))
	if err != nil {
		return recordHeader{}, endOrError(err)
	}
	if len(frames) < h.NewBytes+h.ResponseBytes+1 {
		return recordHeader{}, errEnd
	}
	if err := r.decode(h, frames); err != nil {
		return recordHeader{}, fmt.Errorf("record %d: %w", r.records, err)
	}
	r.recent.add(r.records, r.request)
	r.records++
	r.end += read + int64(len(frames))
	r.lastHash = h.Response
	return h, nil
}

// decode reconstructs the bodies of a record and checks their hashes.
func (r *reader) decode(h recordHeader, frames []byte) error {
	part, err := r.decompress(frames[:h.NewBytes])
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
		if r.response, err = r.decompress(frames[h.NewBytes : h.NewBytes+h.ResponseBytes]); err != nil {
			return err
		}
	}
	if h.Response != "" && schemas.HashBytes(r.response) != cmp.Or(h.KeptResponse, h.Response) {
		return errors.New("the response is damaged")
	}
	return nil
}

// endOrError returns errEnd if err is the end of the file, and err otherwise.
func endOrError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errEnd
	}
	return err
}

// decompress decompresses a frame. It allocates memory as it decompresses, rather than the
// size that the frame claims.
func (r *reader) decompress(frame []byte) ([]byte, error) {
	if len(frame) == 0 {
		return []byte{}, nil
	}
	if err := r.frames.Reset(bytes.NewReader(frame)); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(r.frames, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = errTooLong
	}
	return body, err
}

var errTooLong = fmt.Errorf("a body is longer than %d MiB", maxBody>>20)

// encoder is shared because frames are small and each encoder has its own buffers.
var encoder = sync.OnceValue(func() *zstd.Encoder {
	enc, err := zstd.NewWriter(nil, zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // constant options
	}
	return enc
})

func compress(body []byte) []byte {
	if len(body) == 0 {
		return nil
	}
	return encoder().EncodeAll(body, nil)
}
