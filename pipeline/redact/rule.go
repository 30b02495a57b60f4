package redact

// Data of rules: expressions at keywords, commands with secret arguments, and
// functions that take secrets.

import "regexp"

// Kinds of secrets that need special handling.
const (
	privateKey = "private_key"
	awsKey     = "aws_key"
)

const (
	window    = 400      // bytes of text that decide most rules
	maxWindow = 16 << 10 // bytes of the longest secret
	lookback  = 80       // bytes before a keyword that is in or after its secret
	capBits   = 1.5      // maximum of the entropy that a rule with a prefix requires, in bits per character
)

// rule finds one kind of secret.
type rule struct {
	kind     string
	re       *regexp.Regexp
	group    int
	back     int    // how far before its keyword a match may begin; 0 if it begins with it
	ahead    int    // how far behind its keyword a match may go
	needs    string // must follow the keyword in the window; "" is nothing
	entropy  float64
	vendor   bool // the name of a vendor before an arbitrary value
	line     bool // reads on to the end of its line
	sign     bool // of such rules, those that have no other form
	password bool
	striking bool // the password must be no name
	mixed    bool // the value must have letters and digits
	begins   bool // must not begin within a word, since its keyword may be a part of one
	cost     int  // work of a run that finds nothing
	bare     bool // a very short keyword, which must stand alone
}

// command is one that takes a secret behind a flag that does not name it, such as
// mysql -pVALUE. A sign at the end of a flag stands before the secret in its argument:
// "-u:" is that of curl -u joe:VALUE.
type command struct {
	Words    []string
	Flags    []string
	Striking bool // the secret must be no name
}

// secretCall is a function that takes a secret without naming it, such as login("joe", "VALUE").
type secretCall struct {
	Words []string // in its name
	First int      // the first of its arguments that may be a secret
	Sure  bool     // whatever a person may choose is one
}
