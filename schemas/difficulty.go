package schemas

import (
	"bytes"
	"encoding/json"
)

// DifficultyLevels lists the values of Difficulty.Level and Difficulty.GoldLevel, the easiest
// first.
var DifficultyLevels = []string{"T0", "T1", "T2", "T3", "T4"}

// Difficulty holds measurements of a task's difficulty; nil means not measured. The fields
// whose names begin with Gold are derived from the gold patch, and PPolicy, Policy and PolicyN
// from attempts at the task. They are privileged: Public removes them. The other fields are
// measured on the repository and its first failing test, without knowing the fix.
type Difficulty struct {
	Level              string `json:"level,omitempty"`               // T0 to T4, from TracebackFunctions and ExecutedFunctions: see LevelOf
	TracebackFunctions *int   `json:"traceback_functions,omitempty"` // functions of the program in the failing traceback
	ExecutedFunctions  *int   `json:"executed_functions,omitempty"`  // functions of the program that the failing test executes
	ExecutedFiles      *int   `json:"executed_files,omitempty"`      // files of these functions
	TraceLen           *int   `json:"trace_len,omitempty"`           // events of the failing run
	RepoFiles          *int   `json:"repo_files,omitempty"`          // Python files of the program, without tests
	RepoLines          *int   `json:"repo_lines,omitempty"`          // their lines

	GoldLevel           string `json:"gold_level,omitempty"`            // T0 to T4, by how much the failing tests reveal about the place of the bug
	GoldVisible         *int   `json:"gold_visible,omitempty"`          // what the traceback shows: 0 a changed line, 1 a frame of the program, 2 only frames of tests
	GoldFunctionShown   *bool  `json:"gold_function_shown,omitempty"`   // the traceback shows a changed function
	GoldSymptomDistance *int   `json:"gold_symptom_distance,omitempty"` // trace events plus stack frames from the first wrong value to the failure
	GoldOchiaiRank      *int   `json:"gold_ochiai_rank,omitempty"`      // rank of the changed lines, from 1
	GoldCyclomatic      *int   `json:"gold_cyclomatic,omitempty"`       // complexity of the changed function
	GoldFunctionLines   *int   `json:"gold_function_lines,omitempty"`   // lines of the changed function
	GoldCentrality      *int   `json:"gold_centrality,omitempty"`       // callers of the changed function
	GoldEdits           *int   `json:"gold_edits,omitempty"`
	GoldFiles           *int   `json:"gold_files,omitempty"`

	PPolicy *float64 `json:"p_policy,omitempty"` // pass rate of Policy over PolicyN attempts
	Policy  string   `json:"policy,omitempty"`
	PolicyN int      `json:"policy_n,omitempty"`
}

// Public returns the fields that say nothing about the fix.
func (d Difficulty) Public() Difficulty {
	return Difficulty{
		Level: d.Level, TracebackFunctions: d.TracebackFunctions, ExecutedFunctions: d.ExecutedFunctions,
		ExecutedFiles: d.ExecutedFiles, TraceLen: d.TraceLen, RepoFiles: d.RepoFiles, RepoLines: d.RepoLines,
	}
}

// LevelOf returns the level of a bug by the number of functions of the program that its failing
// test executes, and how many of them the traceback shows: T0 for up to 3 executed functions, T1
// for up to 10, T2 for up to 30, T3 for more, and one level higher if the traceback shows none.
func LevelOf(executed, shown int) string {
	level := 0
	for _, limit := range []int{3, 10, 30} {
		if executed > limit {
			level++
		}
	}
	if shown == 0 {
		level++
	}
	return DifficultyLevels[level]
}

// renamedDifficulty maps the names of fields in task files of version 0.2.0, in which every
// measurement was privileged, to the current names. It does not contain executed_functions,
// because that number also counted functions of tests.
var renamedDifficulty = map[string]string{
	"visible": "gold_visible", "symptom_distance": "gold_symptom_distance", "ochiai_rank": "gold_ochiai_rank",
	"cyclomatic": "gold_cyclomatic", "centrality": "gold_centrality", "n_edits": "gold_edits", "files": "gold_files", "bin": "gold_level",
}

// UnmarshalJSON also reads the names that version 0.2.0 wrote. It rejects unknown names.
func (d *Difficulty) UnmarshalJSON(text []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	old := false
	for oldName, newName := range renamedDifficulty {
		if value, ok := fields[oldName]; ok {
			fields[newName], old = value, true
			delete(fields, oldName)
		}
	}
	if old {
		delete(fields, "executed_functions")
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	type plain Difficulty
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	return dec.Decode((*plain)(d))
}
