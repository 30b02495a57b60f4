package selection

// Predicates returns the named predicates in the order of predicates.yaml.
func Predicates() []NamedExpr {
	lib, err := loadLibrary()
	if err != nil {
		panic(err) // cannot happen, because the definitions are embedded and tested
	}
	var out []NamedExpr
	for _, n := range lib.list {
		out = append(out, *n)
	}
	return out
}
