package schemas

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
)

// CanonicalJSON encodes v with sorted object keys, without insignificant space and
// without HTML escaping, so that equal values give equal bytes. Numbers keep their
// textual form. It fails on values that JSON cannot represent (NaN, functions, cycles).
func CanonicalJSON(v any) ([]byte, error) {
	if encodesSorted(reflect.ValueOf(v)) {
		return SortedJSON(v)
	}
	return sorted(v)
}

// SortedJSON is a faster CanonicalJSON for values whose structs have their fields in the order of the names.
func SortedJSON(v any) ([]byte, error) {
	if direct, err := OrderedJSON(v); err != nil || !bytes.Contains(direct, []byte(`\ufffd`)) { // invalid UTF-8
		return direct, err
	}
	return sorted(v)
}

func sorted(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding canonical JSON: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var generic any // Marshal sorts the keys of maps, but not the fields of structs
	if err := dec.Decode(&generic); err != nil {
		return nil, fmt.Errorf("reading back canonical JSON: %w", err)
	}
	return OrderedJSON(generic)
}

// OrderedJSON returns v as JSON on one line. The fields of structs, and the keys of a json.RawMessage,
// keep their order.
func OrderedJSON(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding JSON: %w", err)
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

// encodesSorted reports whether v consists only of lists, maps and plain values. Encoding
// such a value once gives canonical JSON, unless it contains invalid UTF-8.
func encodesSorted(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Interface:
		return encodesSorted(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !encodesSorted(v.Index(i)) {
				return false
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if !encodesSorted(it.Value()) {
				return false
			}
		}
	case reflect.Struct, reflect.Pointer, reflect.Uint8: // bytes may be JSON in any order (json.RawMessage)
		return false
	}
	return !v.IsValid() || !v.Type().Implements(marshaler) && !v.Type().Implements(textMarshaler)
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// Hash returns the lower-case hex SHA-256 of v's canonical JSON (64 characters).
// It panics if JSON cannot encode v, which cannot happen for the records of this package.
func Hash(v any) string {
	b, err := CanonicalJSON(v)
	if err != nil {
		panic(err)
	}
	return HashBytes(b)
}

// HashBytes returns the lower-case hex SHA-256 of b (64 characters).
func HashBytes(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ShortHash returns the first 32 hex characters of Hash, the form of every id.
func ShortHash(v any) string { return Hash(v)[:32] }
