package docs

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fragments is what a fragment may use: the source of declarations, and the import
// specifications, by the names they declare.
type fragments struct {
	decls, imports map[string]string
}

// readContext reads testdata/context.go.
func readContext(t *testing.T) fragments {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "testdata/context.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	f := fragments{map[string]string{}, map[string]string{}}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		name := nameOf(path)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		f.imports[name] = name + " " + spec.Path.Value
	}
	for _, decl := range file.Decls {
		var source bytes.Buffer
		if err := format.Node(&source, set, decl); err != nil {
			t.Fatal(err)
		}
		for _, name := range declared(decl) {
			f.decls[name] += source.String() + "\n"
		}
	}
	return f
}

// nameOf is the name of a package, by its path.
func nameOf(path string) string {
	parts := strings.Split(path, "/")
	last := parts[len(parts)-1]
	if len(parts) > 1 && len(last) > 1 && last[0] == 'v' && last[1] >= '0' && last[1] <= '9' {
		return parts[len(parts)-2]
	}
	return last
}

// declared returns the names of a declaration; of a method, its receiver's type.
func declared(decl ast.Decl) (names []string) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		receiver := d.Recv.List[0].Type
		if star, ok := receiver.(*ast.StarExpr); ok {
			receiver = star.X
		}
		return []string{receiver.(*ast.Ident).Name}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}

// program returns a package that compiles if the block is right.
func (f fragments) program(b block) (string, error) {
	code := strings.ReplaceAll(b.text, "…", "/*…*/")
	at := fmt.Sprintf("//line %s:%d\n", b.file, b.line)
	if strings.HasPrefix(code, "package ") {
		// Compiled only: as a main package it would be linked, too.
		_, rest, _ := strings.Cut(code, "\n")
		return fmt.Sprintf("package block\n\n//line %s:%d\n%s", b.file, b.line+1, rest), nil
	}
	if _, err := parse("package block\n" + code); err == nil {
		return f.complete(at + code)
	}
	if expr, err := parser.ParseExpr(code); err == nil {
		if _, call := expr.(*ast.CallExpr); !call {
			return f.complete("var _ =\n" + at + code)
		}
	}
	body := "func _() error {\n{\n" + at + code
	file, err := parse("package block\n" + body + "}\nreturn nil\n}\n")
	if err != nil {
		return "", fmt.Errorf("%s:%d: neither declarations nor statements: %w", b.file, b.line, err)
	}
	fn := file.Decls[len(file.Decls)-1].(*ast.FuncDecl)
	body += "//line used:1\n"
	for _, name := range locals(fn.Body.List[0].(*ast.BlockStmt)) {
		body += "_ = " + name + "\n"
	}
	return f.complete(body + "}\nreturn nil\n}\n")
}

// locals returns the variables that a block declares: they need not be used.
func locals(b *ast.BlockStmt) (names []string) {
	for _, stmt := range b.List {
		switch s := stmt.(type) {
		case *ast.AssignStmt:
			for _, left := range s.Lhs {
				if id, ok := left.(*ast.Ident); ok && s.Tok == token.DEFINE && id.Name != "_" {
					names = append(names, id.Name)
				}
			}
		case *ast.DeclStmt:
			if d, ok := s.Decl.(*ast.GenDecl); ok && d.Tok == token.VAR {
				names = append(names, declared(d)...)
			}
		}
	}
	return names
}

// complete adds what the code uses of the context: first the declarations, then the
// imports, which they may need, too.
func (f fragments) complete(code string) (string, error) {
	for used := []string{}; ; {
		file, err := parse("package block\n" + code)
		if err != nil {
			return "", err
		}
		var more []string
		for _, id := range file.Unresolved {
			if f.decls[id.Name] != "" && !slices.Contains(used, id.Name) && !slices.Contains(more, id.Name) {
				more = append(more, id.Name)
			}
		}
		if len(more) == 0 {
			return "package block\n\n" + f.importsOf(file) + code, nil
		}
		for _, name := range more {
			if !strings.Contains(code, f.decls[name]) { // one declaration of several names
				code += "\n//line context.go:1\n" + f.decls[name]
			}
		}
		used = append(used, more...)
	}
}

// importsOf returns the imports that a file lacks.
func (f fragments) importsOf(file *ast.File) string {
	imports := ""
	has := func(name string) bool {
		return slices.ContainsFunc(file.Imports, func(s *ast.ImportSpec) bool {
			path, _ := strconv.Unquote(s.Path.Value)
			return s.Name != nil && s.Name.Name == name || s.Name == nil && nameOf(path) == name
		})
	}
	for _, id := range file.Unresolved {
		spec := f.imports[id.Name]
		if spec != "" && !has(id.Name) && !strings.Contains(imports, "import "+spec+"\n") {
			imports += "import " + spec + "\n"
		}
	}
	return imports
}

func parse(source string) (*ast.File, error) {
	return parser.ParseFile(token.NewFileSet(), "", source, 0)
}
