package mutate

// File is one file to mutate.
type File struct {
	Path string // relative to Workdir
	// Lines limits the sites to those that begin on one of these lines, for example on lines
	// that tests run; nil = all lines.
	Lines []int
	// Types are the names of the types that a run observed, by function (named as in
	// Site.Func) and variable. The operator f3 then exchanges variables of the same type.
	// Without Types, it infers the types from the source.
	Types map[string]map[string][]string
}

// Site is a position in a file with the change that one operator would make there. It is valid
// only for the exact content of the file; Apply refuses it for any other content.
type Site struct {
	ID       string `json:"id"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	EndLine  int    `json:"end_line"`
	Start    int    `json:"start"` // offset of its first changed byte in the UTF-8 text of the file
	End      int    `json:"end"`   // offset after its last changed byte
	Func     string `json:"func"`  // Class.method, outer.inner, the name of a class for its body, or <module>
	Operator string `json:"operator"`
	Family   string `json:"family"`
	Note     string `json:"note"` // old text -> new text
	// Obvious is set if a reader notices the change without understanding the code, because it
	// removes a statement or results in "return None" or "if False", or if hardly anybody would
	// write it, such as an exception of another class.
	Obvious bool `json:"obvious,omitempty"`
}

// Skipped is a file that Enumerate skipped, and the reason.
type Skipped struct{ File, Why string }

// Listing is the result of Enumerate.
type Listing struct {
	Sites   []Site // in the order of the files, then by position
	Skipped []Skipped
}

// Function is a function that a mutation changes.
type Function struct {
	File    string `json:"file"`
	Name    string `json:"name"` // as in Site.Func
	Line    int    `json:"line"` // before the change; 0 = the function is new
	EndLine int    `json:"end_line"`
	// Before and After are hashes of the function's syntax tree before and after the change,
	// without positions, docstrings and literals of 40 characters or more. They do not depend
	// on the version of Python. A hash is "" if the function does not exist.
	Before string `json:"before"`
	After  string `json:"after"`
	// Shape is a hash of both versions that ignores the names of the function and of its
	// variables. It is equal for the same change of two copies of a function that differ only
	// in these names, and "" if there is only one version.
	Shape string `json:"shape,omitempty"`
}

// Mutation is one bug.
type Mutation struct {
	Patch []byte // git diff from the correct to the buggy version
	Sites []Site // the changed sites; nil if the mutation does not come from operators
	// Commit is the commit that Invert has reverted.
	Commit string
	Funcs  []Function
	// BodyHash is the SHA-256 in hex of the changed functions after the change. It does not
	// depend on their files. Mutations with equal hashes are the same bug.
	BodyHash string
	// Shape is the hash of the functions' shapes, "" if one of them has none.
	Shape string
}

// FunctionOutline is a function of an unchanged file.
type FunctionOutline struct {
	Function            // After is empty
	Statements int      `json:"statements"`
	Calls      []string `json:"calls"` // names of the functions that it calls, without their qualifiers
}

// Operator is a mutation operator: one kind of mistake.
type Operator struct {
	ID      string `json:"id"`
	Family  string `json:"family"`
	Title   string `json:"title"`
	Symptom string `json:"symptom"` // what a user of the buggy program notices
}

// RefusedError says why the mutator does not support a file or a change.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return "mutation refused: " + e.Why }
