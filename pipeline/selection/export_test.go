package selection

// Predicates returns the named predicates in the order of predicates.yaml.
func Predicates() []Named {
	lib, err := loadLibrary()
	if err != nil {
		panic(err) // embedded
	}
	var out []Named
	for _, n := range lib.list {
		out = append(out, *n)
	}
	return out
}
