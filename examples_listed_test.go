package mercer_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryFunctionHasAnExample: each exported function and method of package mercer has an
// example that is named after it and whose output is checked.
func TestEveryFunctionHasAnExample(t *testing.T) {
	set := token.NewFileSet()
	files := func(tests bool) (list []*ast.File) {
		names, err := filepath.Glob("*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") != tests {
				continue
			}
			f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, f)
		}
		return list
	}
	has := map[string]bool{}
	for _, e := range doc.Examples(files(true)...) {
		if e.Output == "" && !e.EmptyOutput {
			t.Errorf("Example%s has no output to check", e.Name)
		}
		name, suffix, _ := strings.Cut(e.Name, "_")
		if method, _, _ := strings.Cut(suffix, "_"); ast.IsExported(method) {
			name += "." + method
		}
		has[name] = true
	}
	exported := 0
	for _, f := range files(false) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() {
				continue
			}
			name := fn.Name.Name
			if fn.Recv != nil {
				of := fn.Recv.List[0].Type
				if star, ok := of.(*ast.StarExpr); ok {
					of = star.X
				}
				if index, ok := of.(*ast.IndexExpr); ok {
					of = index.X
				}
				receiver := of.(*ast.Ident)
				if !receiver.IsExported() {
					continue
				}
				name = receiver.Name + "." + name
			}
			exported++
			if !has[name] {
				t.Errorf("%s has no example: write Example%s", name, strings.Replace(name, ".", "_", 1))
			}
		}
	}
	if exported < 30 {
		t.Errorf("only %d exported functions and methods were found", exported)
	}
}
