package settings

import (
	_ "embed"
	"encoding/json"
	"reflect"
	"strings"
)

// meaningsFile holds the comments of the fields of all structs with settings, by type and field. The
// test of this package writes it, because comments are not part of a program.
//
//go:embed meanings.json
var meaningsFile []byte

var meanings = func() (all map[string]map[string]string) {
	if err := json.Unmarshal(meaningsFile, &all); err != nil {
		panic(err) // cannot happen: a test reads the embedded file
	}
	return all
}()

const modulePath = "github.com/tracesmith/tracesmith/"

// typeKey names a type in meanings.json.
func typeKey(t reflect.Type) string {
	return strings.TrimPrefix(t.PkgPath(), modulePath) + "." + t.Name()
}

// Meaning returns the comment of a field as one sentence, "" if it has none.
func Meaning(owner reflect.Type, field string) string { return meanings[typeKey(owner)][field] }
