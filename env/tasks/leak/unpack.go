package leak

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
)

// Limits of unpacking and decoding.
const (
	maxDepth    = 6        // nested forms
	maxStream   = 8 << 20  // unpacked bytes of one stream
	maxPerFile  = 32 << 20 // unpacked bytes of one file, in all its forms
	maxMembers  = 2000     // members of an archive
	maxStreams  = 200      // compressed streams in a file
	maxAttempts = 2000     // positions in a file at which a compressed stream is tried
	minBytes    = 8        // shorter texts are ignored
)

// unpacker finds the texts in a file.
type unpacker struct {
	budget   int             // bytes that may still be unpacked
	attempts int             // compressed streams that were tried
	seen     map[uint64]bool // hashes of texts
	each     func(form, text string)
}

// unpack calls each with the text of a file and with every text that is packed or encoded in it. form says how the text
// is packed or encoded, outermost first; it is "" for the file itself.
func unpack(data []byte, each func(form, text string)) {
	u := &unpacker{budget: maxPerFile, seen: map[uint64]bool{}, each: each}
	u.visit("", data, 0)
}

// visit calls u.each with data and with all texts that are packed or encoded in it.
func (u *unpacker) visit(form string, data []byte, depth int) {
	if len(data) < minBytes || depth > maxDepth || u.budget <= 0 {
		return
	}
	if depth > 0 {
		hash := uint64(fnvOffset)
		for _, b := range data {
			hash = (hash ^ uint64(b)) * fnvPrime
		}
		if u.seen[hash] {
			return
		}
		u.seen[hash] = true
		u.budget -= len(data)
	}
	u.each(form, string(data))
	next := func(by string, data []byte) {
		if form != "" {
			by = form + ", " + by
		}
		u.visit(by, data, depth+1)
	}
	if text, ok := wideText(data); ok {
		next("UTF-16", text)
		return
	}
	u.archives(data, next)
	u.streams(data, next)
	if mostlyText(data) {
		u.decode(string(data), next)
	}
}

// archives calls next with the members of zip and tar files.
func (u *unpacker) archives(data []byte, next func(string, []byte)) {
	if bytes.Contains(data, []byte("PK\x03\x04")) {
		if z, err := zip.NewReader(bytes.NewReader(data), int64(len(data))); err == nil {
			for _, f := range z.File[:min(len(z.File), maxMembers)] {
				if r, err := f.Open(); err == nil {
					next("zip: "+f.Name, u.readAll(r))
				}
			}
			next("zip", []byte(z.Comment))
		}
	}
	if len(data) > 512 && string(data[257:262]) == "ustar" {
		r := tar.NewReader(bytes.NewReader(data))
		for range maxMembers {
			head, err := r.Next()
			if err != nil {
				return
			}
			next("tar: "+head.Name, u.readAll(r))
		}
	}
}

// readAll reads a stream up to the limits. If the stream is broken, it returns the data before the error.
func (u *unpacker) readAll(r io.Reader) []byte {
	out, _ := io.ReadAll(io.LimitReader(r, int64(min(maxStream, max(u.budget, 0)))))
	return out
}

// compressedFormats are the formats of compressed streams, with the bytes at their start. Streams of a format with
// anywhere set are also searched for inside of files.
var compressedFormats = []struct {
	name, magic string
	anywhere    bool
	open        func(io.Reader) (io.Reader, error)
}{
	{"gzip", "\x1f\x8b\x08", true, func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	{"bz2", "BZh", true, func(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }},
	{"xz", "\xfd7zXZ\x00", true, func(r io.Reader) (io.Reader, error) {
		return xz.ReaderConfig{DictCap: maxStream}.NewReader(r)
	}},
	{"lzma", "\x5d\x00\x00", false, func(r io.Reader) (io.Reader, error) {
		return lzma.ReaderConfig{DictCap: maxStream}.NewReader(r)
	}},
	{"zstd", "\x28\xb5\x2f\xfd", true, func(r io.Reader) (io.Reader, error) {
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPerFile), zstd.WithDecoderMaxWindow(maxStream))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}},
	{"zlib", "\x78\x01", true, zlibReader}, {"zlib", "\x78\x5e", true, zlibReader},
	{"zlib", "\x78\x9c", true, zlibReader}, {"zlib", "\x78\xda", true, zlibReader},
}

func zlibReader(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }

// streams calls next with the content of compressed streams, which may start anywhere in data.
func (u *unpacker) streams(data []byte, next func(string, []byte)) {
	found := 0
	for _, p := range compressedFormats {
		magic := []byte(p.magic)
		for at := 0; found < maxStreams && u.attempts < maxAttempts && u.budget > 0; at++ {
			i := bytes.Index(data[at:], magic)
			if i < 0 || i+at > 0 && !p.anywhere {
				break
			}
			at += i
			u.attempts++
			if text := u.stream(p.name, p.open, data[at:]); len(text) >= minBytes {
				found++
				next(p.name, text)
			}
		}
	}
	// Raw deflate has no magic bytes.
	if found == 0 && u.attempts < maxAttempts && !mostlyText(data) {
		u.attempts++
		if text := u.readAll(flate.NewReader(bytes.NewReader(data))); mostlyText(text) {
			next("deflate", text)
		}
	}
}

func (u *unpacker) stream(name string, open func(io.Reader) (io.Reader, error), data []byte) []byte {
	if !isPlausible(name, data) {
		return nil
	}
	r, err := open(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	if c, ok := r.(io.Closer); ok {
		defer func() { _ = c.Close() }() // only read from memory
	}
	return u.readAll(r)
}

// isPlausible reports whether the header of a stream is valid and asks for little memory. The header of lzma names the
// size of the dictionary, which the decoder allocates at once.
func isPlausible(name string, data []byte) bool {
	switch name {
	case "lzma":
		return len(data) > 13 && binary.LittleEndian.Uint32(data[1:]) <= maxStream
	case "bz2":
		return len(data) > 10 && string(data[4:10]) == "1AY&SY"
	}
	return true
}

// wideText decodes UTF-16 and UTF-32. It returns false for other data.
func wideText(data []byte) ([]byte, bool) {
	sample := data[:min(len(data), 4096)]
	var zeros [4]int
	for i, b := range sample {
		if b == 0 {
			zeros[i%4]++
		}
	}
	quarter := len(sample) / 4
	full := func(i int) bool { return quarter > 1 && zeros[i]*10 >= quarter*7 }
	var order binary.ByteOrder = binary.LittleEndian
	size, from := 2, 0
	switch {
	case full(1) && full(2) && full(3) && !full(0):
		size = 4
	case full(0) && full(1) && full(2) && !full(3):
		size, order = 4, binary.BigEndian
	case full(1) && full(3) && !full(0) && !full(2), bytes.HasPrefix(data, []byte{0xff, 0xfe}):
	case full(0) && full(2) && !full(1) && !full(3), bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		return nil, false
	}
	var out strings.Builder
	var units []uint16
	for i := from; i+size <= len(data); i += size {
		if size == 4 {
			out.WriteRune(rune(order.Uint32(data[i:])))
			continue
		}
		units = append(units, order.Uint16(data[i:]))
	}
	out.WriteString(string(utf16.Decode(units)))
	return []byte(out.String()), true
}

// mostlyText reports whether data is ASCII or UTF-8 text, with few other bytes.
func mostlyText(data []byte) bool {
	sample := data[:min(len(data), 4096)]
	odd := 0
	for _, b := range sample {
		if b < ' ' && b != '\n' && b != '\r' && b != '\t' && b != '\f' && b != 0x1b || b == 127 {
			odd++
		}
	}
	return len(sample) >= minBytes && odd*20 < len(sample) && strings.Count(strings.ToValidUTF8(string(sample), "\x00"), "\x00")*20 < len(sample)
}
