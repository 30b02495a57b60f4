package formats

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"reflect"
	"time"

	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// digestSeed is random, so digests can be compared only within this process.
var digestSeed = maphash.MakeSeed()

// digest computes a fingerprint of a sequence of rows. Equal sums mean equal values in
// equal order. Nulls, empty texts and empty lists have different sums.
type digest struct {
	table *arrowrec.Table
	h     maphash.Hash
}

func newDigest(t *arrowrec.Table) *digest {
	d := &digest{table: t}
	d.h.SetSeed(digestSeed)
	return d
}

// add adds a row; row must be a pointer to a row struct of the table.
func (d *digest) add(row any) {
	rv := reflect.ValueOf(row).Elem()
	for _, c := range d.table.Columns {
		d.value(c.Value(rv))
	}
}

func (d *digest) value(v any) {
	switch v := v.(type) {
	case nil:
		d.number(0, 0)
	case string:
		d.number(1, uint64(len(v)))
		_, _ = d.h.WriteString(v)
	case bool:
		n := uint64(0)
		if v {
			n = 1
		}
		d.number(2, n)
	case int32:
		d.number(3, uint64(v))
	case int64:
		d.number(4, uint64(v))
	case float64:
		d.number(5, math.Float64bits(v))
	case time.Time:
		d.number(6, uint64(v.UnixMicro()))
	case []string:
		d.number(7, uint64(len(v)))
		for _, s := range v {
			d.value(s)
		}
	}
}

func (d *digest) number(tag byte, n uint64) {
	var b [9]byte
	b[0] = tag
	binary.LittleEndian.PutUint64(b[1:], n)
	_, _ = d.h.Write(b[:])
}

func (d *digest) sum() uint64 { return d.h.Sum64() }
