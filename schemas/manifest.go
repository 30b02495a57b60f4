package schemas

import "encoding/json"

// Manifest is manifest.json, the commit record of a published dataset version:
// canonical JSON, written after all files that it lists. A file that no manifest
// lists is not part of the dataset. A manifest contains no time and no host name, so
// equal inputs give equal bytes.
type Manifest struct {
	ManifestVersion int               `json:"manifest_version"` // 1
	Dataset         string            `json:"dataset"`
	Version         string            `json:"version"` // derived from the inputs
	Schemas         map[string]string `json:"schemas"` // table -> version
	Producer        Producer          `json:"producer"`
	Inputs          []ManifestInput   `json:"inputs"`
	Runs            []ManifestRun     `json:"runs"`
	Split           *ManifestSplit    `json:"split,omitempty"`
	Selection       *SelectionInfo    `json:"selection,omitempty"`
	Files           []ManifestFile    `json:"files"`
	Totals          ManifestTotals    `json:"totals"`
	// Checks maps each check of the data to the file with its report.
	Checks map[string]string `json:"checks,omitempty"`
	// SelfSHA256 is the hash of the canonical JSON of all other fields. With it, even
	// a manifest that no pointer refers to can be checked. Datasets of earlier
	// versions of the program do not have it.
	SelfSHA256 string `json:"self_sha256,omitempty"`
}

// Seal sets SelfSHA256. The manifest must not be changed afterwards.
func (m *Manifest) Seal() {
	m.SelfSHA256 = ""
	m.SelfSHA256 = Hash(m)
}

// VerifySeal reports whether a manifest's JSON matches its self_sha256, or has none.
// The hash includes fields that this version of the program does not know.
func VerifySeal(raw []byte) bool {
	var doc map[string]json.RawMessage
	if json.Unmarshal(raw, &doc) != nil {
		return false
	}
	hash, found := doc["self_sha256"]
	if !found {
		return true
	}
	delete(doc, "self_sha256")
	sum, err := CanonicalJSON(doc)
	return err == nil && string(hash) == `"`+HashBytes(sum)+`"`
}

// Producer identifies the program that wrote a dataset.
type Producer struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Parquet string `json:"parquet"` // the Parquet writer
}

// ManifestInput counts the tasks of one source.
type ManifestInput struct {
	Source   string `json:"source"`
	Revision string `json:"revision,omitempty"`
	License  string `json:"license,omitempty"`
	Tasks    int    `json:"n_tasks"`
}

// ManifestRun counts the episodes of one run.
type ManifestRun struct {
	RunID        string   `json:"run_id"`
	Model        string   `json:"model"`
	Agent        string   `json:"agent"`
	ConfigSHA256 string   `json:"config_sha256,omitempty"`
	Episodes     int      `json:"episodes"`
	CostUSD      *float64 `json:"cost_usd,omitempty"` // nil: no episode reported a cost
}

// ManifestSplit describes how repositories are assigned to splits.
type ManifestSplit struct {
	Policy string             `json:"policy"` // repo-hash: by the hash of salt and split_group
	Salt   string             `json:"salt"`
	Ratios map[string]float64 `json:"ratios"`
	// Exceptions counts the episodes in another split than Policy gives: "tasks split"
	// set it, or the repository belongs to a benchmark and is therefore in test.
	Exceptions int `json:"otherwise"`
}

// ManifestFile is one file of the version. Path is relative to the version's
// directory; the row fields are zero for files that are not tables.
type ManifestFile struct {
	Path         string   `json:"path"`
	Table        string   `json:"table,omitempty"`
	Split        string   `json:"split,omitempty"`
	Rows         int64    `json:"rows,omitempty"`
	Bytes        int64    `json:"bytes"`
	Uncompressed int64    `json:"uncompressed,omitempty"` // bytes of the values before encoding
	RowGroups    int      `json:"row_groups,omitempty"`
	SHA256       string   `json:"sha256"`
	MinKey       []string `json:"min_key,omitempty"` // sort key of the first and last row
	MaxKey       []string `json:"max_key,omitempty"`
}

// ManifestTotals are the counts of a whole dataset version.
type ManifestTotals struct {
	Episodes    int      `json:"episodes"`
	Steps       int64    `json:"steps"`
	Kept        int      `json:"kept"`                   // by the selection; 0 without one
	DeadLetters int      `json:"dead_letters,omitempty"` // units without an episode
	CostUSD     *float64 `json:"cost_usd,omitempty"`
	CostPerKept *float64 `json:"cost_per_kept,omitempty"`
}

// SelectionInfo describes how the episodes of a selection were chosen.
type SelectionInfo struct {
	Name   string         `json:"name"`
	SHA256 string         `json:"sha256"`         // hash of the recipe's content
	Expr   string         `json:"expr,omitempty"` // the predicates combined
	Seed   int64          `json:"seed"`
	Caps   map[string]int `json:"caps,omitempty"`
	Dedup  []string       `json:"dedup,omitempty"`
	Near   float64        `json:"near,omitempty"`   // MinHash similarity from which an episode counts as a duplicate; 0 = off
	Group  string         `json:"group,omitempty"`  // column that makes a group; "" = group_id
	Select string         `json:"select,omitempty"` // which episodes of a group are kept; "" = all
	Best   int            `json:"best,omitempty"`   // how many episodes of a group are kept; 0 = 1
	Funnel []FunnelStep   `json:"funnel"`
	// KeptGold counts the kept episodes whose policy could see the gold patch
	// (gold_used). They are not successes of an agent.
	KeptGold int `json:"kept_gold_used,omitempty"`
	// Reports are counts over the kept episodes; they reject none.
	Reports []FunnelStep `json:"reports,omitempty"`
	// Definitions holds the definitions of the named predicates that were used.
	Definitions map[string]string `json:"definitions,omitempty"`
}

// FunnelStep is one named predicate of a selection: In episodes reached it, Out
// episodes passed it. Unknown counts the episodes that failed because a column
// that the predicate needs is null.
type FunnelStep struct {
	Predicate string `json:"predicate"`
	Expr      string `json:"expr"`
	In        int    `json:"in"`
	Out       int    `json:"out"`
	Unknown   int    `json:"unknown"`
}

// Pointer is latest.json at a dataset's root: the version that readers should use.
type Pointer struct {
	Dataset        string `json:"dataset"`
	Version        string `json:"version"`
	Manifest       string `json:"manifest"` // key of the manifest, relative to the root
	ManifestSHA256 string `json:"manifest_sha256"`
}
