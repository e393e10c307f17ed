package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// Every exported name is explained where it is declared. What a generator wrote
// is explained at its source.
func TestExportedNamesAreDocumented(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		set, files := p.parse(t, p.GoFiles, parser.ParseComments)
		documented, generated := false, true
		for _, file := range files {
			documented = documented || file.Doc.Text() != ""
			if ast.IsGenerated(file) {
				continue
			}
			generated = false
			for _, missing := range undocumented(file) {
				t.Errorf("%v: %s is exported and has no doc comment", set.Position(missing.Pos()), missing.Name)
			}
		}
		if len(files) > 0 && !documented && !generated {
			t.Errorf("%s has no package documentation", p.name())
		}
	}
}

// undocumented lists the exported names of a file that no comment explains.
func undocumented(file *ast.File) []*ast.Ident {
	var missing []*ast.Ident
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && exportedReceiver(d) && d.Doc.Text() == "" && !selfExplaining(d) {
				missing = append(missing, d.Name)
			}
		case *ast.GenDecl:
			missing = append(missing, undocumentedSpecs(d)...)
		}
	}
	return missing
}

// undocumentedSpecs lists those of a declaration of constants, variables or
// types. A comment on a group explains the group.
func undocumentedSpecs(d *ast.GenDecl) []*ast.Ident {
	if d.Doc.Text() != "" && d.Tok != token.IMPORT {
		return nil
	}
	var missing []*ast.Ident
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc.Text() == "" && s.Comment.Text() == "" {
				missing = append(missing, s.Name)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && s.Doc.Text() == "" && s.Comment.Text() == "" {
					missing = append(missing, name)
				}
			}
		}
	}
	return missing
}

// exportedReceiver reports whether a function is one, or a method of an
// exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// selfExplaining methods are those of interfaces that every reader knows.
func selfExplaining(d *ast.FuncDecl) bool {
	return d.Recv != nil && d.Name.Name == "Error" && d.Type.Params.NumFields() == 0
}

// TestUndocumentedBites: the search finds what it is for.
func TestUndocumentedBites(t *testing.T) {
	t.Parallel()
	const source = `package x
func Bare() {}
// Told is told.
func Told() {}
type hidden struct{}
func (hidden) Method() {}
// Open is told.
type Open[T any] struct{}
func (o *Open[T]) Method() {}
func (o *Open[T]) Error() string { return "" }
const A = 1
// B and C are told.
const (
	B = 2
	C = 3
)
var D, e = 4, 5
`
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var names string
	for _, m := range undocumented(file) {
		names += m.Name + " "
	}
	if names != "Bare Method A D " {
		t.Errorf("found %q, want Bare, the method of Open, A and D", names)
	}
}
