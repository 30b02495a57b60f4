package mutate

// File is one file to mutate.
type File struct {
	Path string // relative to Workdir
	// Lines limits the sites to those that begin on one of them, for example on lines that
	// tests run; nil: all.
	Lines []int
	// Types are the names of the types that a run observed, by function (qualified, as in
	// Site.Func) and variable. The operator f3 then exchanges names of the same type; without
	// Types it judges by the text.
	Types map[string]map[string][]string
}

// Site is one place and the change that one operator would make there. It belongs to the exact
// bytes of the file: Apply refuses it for another version.
type Site struct {
	ID       string `json:"id"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	EndLine  int    `json:"end_line"`
	Start    int    `json:"start"` // bytes of the file's UTF-8 text, from its first change
	End      int    `json:"end"`   // after its last change
	Func     string `json:"func"`  // names joined by dots: Class.method, outer.inner; <module>; a class for its own body
	Operator string `json:"operator"`
	Family   string `json:"family"`
	Note     string `json:"note"` // old text -> new text
	// Obvious changes show in the code: they take a statement away, or leave
	// "return None" or "if False" behind.
	Obvious bool `json:"obvious,omitempty"`
}

// Skipped is a file that was not searched, and why.
type Skipped struct{ File, Why string }

// Listing is the result of Enumerate.
type Listing struct {
	Sites   []Site // in the order of the files, then by place
	Skipped []Skipped
}

// Function is a function that a mutation changes.
type Function struct {
	File    string `json:"file"`
	Name    string `json:"name"` // as Site.Func
	Line    int    `json:"line"` // before the change; 0: the function is new
	EndLine int    `json:"end_line"`
	// Before and After are hashes of its syntax tree without positions, docstrings and
	// literals of 40 characters or more, equal for all versions of Python; "" if the function
	// does not exist then.
	Before string `json:"before"`
	After  string `json:"after"`
	// Shape is a hash of both versions, equal for the same change of copies of a function
	// that differ in its name and in the names of its variables only; "" without both versions.
	Shape string `json:"shape,omitempty"`
}

// Mutation is one bug.
type Mutation struct {
	Patch []byte // unified diff in git's form: healthy to buggy
	Sites []Site // that it changes; none if it does not come from operators
	// Commit is the commit that an inversion reverts.
	Commit string
	Funcs  []Function
	// BodyHash is the SHA-256 in hex of the changed functions after the change, whatever their
	// files: mutations with equal hashes are the same bug.
	BodyHash string
	// Shape is the hash of the functions' shapes; "" if one of them has none.
	Shape string
}

// Outlined is a function of a file, before any change.
type Outlined struct {
	Function            // After is empty
	Statements int      `json:"statements"`
	Calls      []string `json:"calls"` // last names of the functions it calls
}

// Operator is one way of making a mistake.
type Operator struct {
	ID      string `json:"id"`
	Family  string `json:"family"`
	Title   string `json:"title"`
	Symptom string `json:"symptom"` // as a user of the program sees it
}

// RefusedError says why a file or a change is not supported.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return "mutation refused: " + e.Why }
