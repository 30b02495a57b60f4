package formats

import "github.com/apache/arrow/go/v17/parquet/compress"

// sharedZstd keeps one encoder for our level. Arrow v17 makes a new one, some
// megabytes, for every page of every column; its Encode, which has the default
// level and that is 3, shares one.
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
		panic(err) // it is linked in
	}
	compress.RegisterCodec(compress.Codecs.Zstd, sharedZstd{codec})
}
