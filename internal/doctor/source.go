package doctor

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
)

// read looks for pools in the application's code that it opens past the library.
func (d *doctor) read(folder string) {
	if folder == "" {
		d.report.add(Finding{
			Note, "", "pools", "the application's code was not looked at",
			"pools that dbresolver opens with another dialector than rywpgx's serve no token reads, or unproven ones with TrustPools", "doctor -source FOLDER, or Plugin.Status",
		})
		return
	}
	var found pools
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != folder && (e.Name() == "vendor" || e.Name() == "testdata" || strings.HasPrefix(e.Name(), ".")):
			return filepath.SkipDir
		case !e.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			found.file(path)
		}
		return nil
	})
	if err != nil {
		d.report.add(Finding{Fail, "", "pools", err.Error(), "the application's code was not looked at", ""})
		return
	}
	d.pools(&found)
}

func (d *doctor) pools(p *pools) {
	for _, at := range p.foreign {
		f := Finding{
			Fail, "", "pools", at + ": dbresolver opens replicas with another dialector than rywpgx's",
			"nothing proves which server their connections are to: they serve no token reads", "rywpgx.Open in their place, or rywplugin.Config.Replicas instead of dbresolver.Config.Replicas",
		}
		if p.trusted != "" {
			f.Level = Warn
			f.Means = "TrustPools (" + p.trusted + ") has them serve token reads all the same: right only where each address leads to one server"
		}
		d.report.add(f)
	}
	if len(p.foreign) == 0 {
		d.report.add(Finding{OK, "", "pools", fmt.Sprintf("%d Go files: no replicas are opened past the library", p.files), "", ""})
	}
}

// pools are places in source code.
type pools struct {
	files   int
	foreign []string
	trusted string
}

// packages are those that matter here, and what they are called without another name.
var packages = map[string]string{
	"gorm.io/plugin/dbresolver":           "dbresolver",
	"gorm.io/driver/postgres":             "postgres",
	"github.com/gorm-ryw/gorm-ryw/plugin": "rywplugin",
}

// file reads one file; what does not compile is passed over.
func (p *pools) file(path string) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return
	}
	p.files++
	names := map[string]string{} // what the file calls the packages
	for _, i := range f.Imports {
		if name := packages[strings.Trim(i.Path.Value, `"`)]; i.Name != nil {
			names[i.Name.Name] = name
		} else {
			names[name] = name
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok {
			p.literal(lit, names, fmt.Sprintf("%s:%d", path, set.Position(lit.Pos()).Line))
		}
		return true
	})
}

func (p *pools) literal(lit *ast.CompositeLit, names map[string]string, at string) {
	switch selected(lit.Type, names) {
	case "dbresolver.Config":
		if v := field(lit, "Replicas"); v != nil && mentions(v, names, "postgres.Open", "postgres.New") {
			p.foreign = append(p.foreign, at)
		}
	case "rywplugin.Config":
		if v, ok := field(lit, "TrustPools").(*ast.Ident); ok && v.Name == "true" {
			p.trusted = at
		}
	}
}

// selected is "package.Name" of an expression that is one of a known package.
func selected(e ast.Expr, names map[string]string) string {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, ok := sel.X.(*ast.Ident)
	if !ok || names[pkg.Name] == "" {
		return ""
	}
	return names[pkg.Name] + "." + sel.Sel.Name
}

func field(lit *ast.CompositeLit, name string) ast.Expr {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == name {
				return kv.Value
			}
		}
	}
	return nil
}

func mentions(e ast.Expr, names map[string]string, what ...string) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			for _, w := range what {
				found = found || selected(sel, names) == w
			}
		}
		return true
	})
	return found
}
