package views_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/tracesmith/tracesmith/sinks"
)

// Each row of every format names its episode and its split, in the row or in the origin
// file.
func TestEveryRowNamesItsSplitAndEpisode(t *testing.T) {
	for _, kind := range sinks.Views.Kinds() {
		t.Run(kind, func(t *testing.T) {
			in := goldenInput(kind)
			ids := map[string]bool{}
			for i := range in {
				in[i].Episode.Split = "validation"
				ids[in[i].Episode.EpisodeID] = true
			}
			rows, _ := rowsOf(t, kind, sinks.ViewOptions{AllowGold: true}, in...)
			if len(rows) == 0 {
				t.Fatal("no rows")
			}
			for i, row := range rows {
				text := row.Body
				for _, value := range []any{row.Value, row.Origin} {
					text = append(text, canonical(t, value)...)
				}
				split, episode := false, false
				dec := json.NewDecoder(bytes.NewReader(text))
				for dec.More() {
					var v any
					if err := dec.Decode(&v); err != nil {
						t.Fatal(err)
					}
					eachField(v, func(key string, value any) {
						id, _ := value.(string)
						split = split || key == "split" && value == "validation"
						episode = episode || ids[id]
					})
				}
				if !split || !episode {
					t.Errorf("row %d names its split: %v, its episode: %v", i, split, episode)
				}
			}
		})
	}
}

// eachField calls use for every field of every object in v.
func eachField(v any, use func(key string, value any)) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			eachField(x, use)
		}
	case map[string]any:
		for key, x := range v {
			use(key, x)
			eachField(x, use)
		}
	}
}
