package closure

import "fmt"

// Entity is something that a step names or asserts although nothing had shown it.
type Entity struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// Kinds of entities.
const (
	Identifier = "identifier"
	Line       = "line"
	Value      = "value" // a number or string, or what the fixed program does
	File       = "file"
	Test       = "test"
	Parts      = "parts"     // into how many parts the fix divides
	Order      = "order"     // which part of the fix comes first
	Iteration  = "iteration" // a condition or count that singles out a later iteration
)

func lineText(file string, n int) string {
	if file == "" || file == "." {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s:%d", file, n)
}
