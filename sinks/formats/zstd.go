package formats

import "github.com/apache/arrow/go/v17/parquet/compress"

// sharedZstd shares one encoder for zstdLevel. In Arrow v17, EncodeLevel creates a new
// encoder of several megabytes for every page of every column. Encode, which uses the
// default level 3, shares an encoder.
type sharedZstd struct{ compress.Codec }

func (z sharedZstd) EncodeLevel(dst, src []byte, level int) []byte {
	if level == zstdLevel {
		return z.Encode(dst, src)
	}
	return z.Codec.EncodeLevel(dst, src, level)
}

func init() {
	codec, err := compress.GetCodec(compress.Codecs.Zstd)
	if err != nil {
		panic(err) // the codec is linked in
	}
	compress.RegisterCodec(compress.Codecs.Zstd, sharedZstd{codec})
}
