package formats_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

type exported struct {
	Name  string  `json:"name" parquet:"name"`
	Calls []inner `json:"calls" parquet:"calls,list"`
	Said  *string `json:"said,omitempty" parquet:"said,optional"`
}

type inner struct {
	Args string `json:"args" parquet:"args"`
}

// Rows read from each container equal those written, and equal rows give equal bytes.
func TestRowsComeBackFromEveryContainer(t *testing.T) {
	rows := []exported{{"a", []inner{{`{"x":1}`}, {"{}"}}, new("ü\n")}, {"b", nil, nil}}
	const lines = `{"name":"a","calls":[{"args":"{\"x\":1}"},{"args":"{}"}],"said":"ü\n"}` + "\n" + `{"name":"b","calls":null}` + "\n"
	write := func(container string) []byte {
		var out bytes.Buffer
		w, err := formats.NewRowWriter(&out, container)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if err := w.Write(r, r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	read := map[string]func(io.Reader) (io.Reader, error){
		sinks.JSONL:   func(r io.Reader) (io.Reader, error) { return r, nil },
		sinks.JSONLGz: func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		sinks.JSONLZs: func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
	}
	for _, container := range sinks.Containers {
		body := write(container)
		if !bytes.Equal(body, write(container)) {
			t.Errorf("%s: equal rows give different bytes", container)
		}
		if container == sinks.Parquet {
			path := filepath.Join(t.TempDir(), "x.parquet")
			if err := os.WriteFile(path, body, 0o600); err != nil {
				t.Fatal(err)
			}
			var got []map[string]any
			for r, err := range formats.Records(path) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r)
			}
			want := []map[string]any{
				{"name": "a", "said": "ü\n", "calls": []any{map[string]any{"args": `{"x":1}`}, map[string]any{"args": "{}"}}},
				{"name": "b", "calls": []any{}},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			continue
		}
		r, err := read[container](bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || string(text) != lines {
			t.Errorf("%s: %q, %v", container, text, err)
		}
	}
}

func TestRowsWithoutColumnsCannotBeParquet(t *testing.T) {
	w, err := formats.NewRowWriter(io.Discard, sinks.Parquet)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(exported{}, nil); !errors.Is(err, formats.ErrNoColumns) {
		t.Error(err)
	}
	if _, err := formats.NewRowWriter(io.Discard, "tar"); err == nil {
		t.Error("an unknown container was accepted")
	}
}
