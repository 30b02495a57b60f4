package settings

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/configs"

	_ "github.com/tracesmith/tracesmith/cmd/internal/wire"
)

var update = flag.Bool("update", false, "write meanings.json")

const repository = "../../.."

// meanings.json matches the comments in the source, and every setting has one. With -update, the test
// writes it.
func TestMeanings(t *testing.T) {
	want := map[string]map[string]string{}
	add := func(tag string, owner reflect.Type) { addMeanings(t, want, tag, owner) }
	add(configTag, reflect.TypeFor[configs.Config]())
	for _, f := range append(Families(), Family{Components: Views()}) {
		for _, c := range f.Components {
			if c.fields.IsValid() {
				add(componentTag, c.fields.Type())
			}
		}
	}
	if *update {
		body, err := json.MarshalIndent(want, "", " ")
		if err == nil {
			err = os.WriteFile("meanings.json", append(body, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(meanings, want); diff != "" {
		t.Errorf("meanings.json does not match the code: run make docs\n%s", diff)
	}
}

// addMeanings adds the comments of the fields of a struct, and of the structs in it.
func addMeanings(t *testing.T, all map[string]map[string]string, tag string, owner reflect.Type) {
	for owner.Kind() == reflect.Pointer || owner.Kind() == reflect.Slice || owner.Kind() == reflect.Map {
		owner = owner.Elem()
	}
	if owner.Kind() != reflect.Struct || decodesItself(owner) || all[typeKey(owner)] != nil {
		return
	}
	comments, found := fieldComments(t, owner), map[string]string{}
	all[typeKey(owner)] = found
	for f := range owner.Fields() {
		if filledByLLM(f) || keyOf(tag, f) == "" && !f.Anonymous {
			continue
		}
		addMeanings(t, all, tag, f.Type)
		if f.Anonymous {
			continue
		}
		if meaning := sentence(f.Name, comments[f.Name]); meaning != "" {
			found[f.Name] = meaning
		} else if all[typeKey(element(f.Type))] == nil { // a section or a list of blocks needs no comment
			t.Errorf("%s.%s has no comment, which would be its meaning", owner, f.Name)
		}
	}
}

// element returns the type of the elements of t if it is a pointer, a list or a block.
func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}

// sentence returns the comment of a field as one sentence without the name of the field.
func sentence(field, comment string) string {
	for _, opening := range []string{" is ", " are "} {
		comment = strings.TrimPrefix(comment, field+opening)
	}
	if comment == "" {
		return ""
	}
	return strings.TrimSuffix(strings.ToUpper(comment[:1])+comment[1:], ".") + "."
}

// fieldComments reads the comments of the fields of a struct, both above a field and at the end of its line.
func fieldComments(t *testing.T, owner reflect.Type) map[string]string {
	dir := filepath.Join(repository, strings.TrimPrefix(owner.PkgPath(), modulePath))
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the source of %s: %v", owner, err)
	}
	found := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != owner.Name() {
				return true
			}
			block, ok := spec.Type.(*ast.StructType)
			for i := 0; ok && i < len(block.Fields.List); i++ {
				f := block.Fields.List[i]
				for _, name := range f.Names {
					found[name.Name] = strings.Join(slices.Concat(strings.Fields(f.Doc.Text()), strings.Fields(f.Comment.Text())), " ")
				}
			}
			return false
		})
	}
	return found
}
