package redact

// The types of rules: expressions that run at keywords, commands with secret arguments, and
// functions that take secrets.

import "regexp"

// Kinds of secrets that need special handling.
const (
	privateKey = "private_key"
	awsKey     = "aws_key"
)

const (
	window    = 400      // bytes of text that most rules read
	maxWindow = 16 << 10 // maximum length of a secret in bytes
	lookback  = 80       // bytes that a rule reads before a keyword that does not begin its match
	capBits   = 1.5      // upper limit for the entropy that a rule requires, in bits per character
)

// rule finds one kind of secret.
type rule struct {
	kind         string
	re           *regexp.Regexp
	group        int     // of the secret in re; 0: the first group that matches
	back         int     // maximum number of bytes before the keyword at which a match may begin; 0 if matches begin with the keyword
	ahead        int     // maximum number of bytes after the keyword that a match may contain
	needs        string  // must follow the keyword in the window, unless ""
	entropy      float64 // minimum entropy of the secret in bits per character
	vendor       bool    // the keyword is the name of a vendor, followed by an arbitrary value
	line         bool    // the expression reads to the end of the line
	assigned     bool    // a vendor rule whose value must be assigned to the name of the vendor
	password     bool    // the value must look like a password
	unlikeAName  bool    // the password must not look like a name
	generated    bool    // the value must look generated, with letters and digits
	wordStart    bool    // a match must begin at the start of a word, because the keyword may also be part of a word
	cost         int     // cost of one run of re that finds nothing, in units of work (see meter)
	hexKeyword   bool    // the keyword may begin a hexadecimal digest, which is no secret
	shortKeyword bool    // the keyword is very short, so the secret must not adjoin other letters or digits
}

// command is a command that takes a secret after a flag that does not name it, such as
// mysql -pVALUE. If a flag in Flags ends with a separator, the secret is the part of the argument
// after it: "-u:" stands for curl -u joe:VALUE.
type command struct {
	Words       []string // keywords that begin the command
	Flags       []string
	UnlikeAName bool `toml:"unlike_a_name"` // the secret must not look like a name
}

// secretCall is a function that takes a secret without naming it, such as login("joe", "VALUE").
type secretCall struct {
	Words []string // keywords in its name
	First int      // number of the first argument that may be a secret, from 0
	Sure  bool     // any value that may be a password is a secret; otherwise, only a value that looks like one
}
