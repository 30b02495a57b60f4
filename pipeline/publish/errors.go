package publish

import "errors"

// ErrEmpty means that the run directories contain no staged episodes.
var ErrEmpty = errors.New("no staged episodes")

// ErrName means that the name of the dataset is invalid.
var ErrName = errors.New("name of the dataset")

// ErrSchemas means that the staged episodes mix major schema versions, or have one that
// this program does not support.
var ErrSchemas = errors.New("the records cannot be published")

// ErrDamaged means that a staged episode, dead-letters.jsonl or annotations.jsonl is
// invalid.
var ErrDamaged = errors.New("a staged episode is damaged")

// ErrWithheld means that every episode is withheld because of possible secrets.
var ErrWithheld = errors.New("all episodes are withheld")

// ErrOccupied means that the destination contains something other than this dataset.
var ErrOccupied = errors.New("destination is occupied")

// ErrConflict means that an object of this dataset version already exists with different
// content.
var ErrConflict = errors.New("something else wrote to the version")

// ErrLeaseLost means that another publisher took over because this one did not renew
// its lease in time. Anything this one wrote is either complete or has no effect.
var ErrLeaseLost = errors.New("another publisher took over")

// LeftOut is a damaged file whose rows are left out.
type LeftOut struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"` // in the file, if it were whole
	Err   error  `json:"-"`    // names the file and the remedy
}
