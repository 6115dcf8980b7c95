package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// release is a commit whose modules have a version.
type release struct {
	tree    string // a clone of the repository
	version string
	proxy   string // the folder that is a proxy (go help goproxy)
}

// newRelease makes a release of the commit that is checked out at root, below dir. Its
// version is that commit's own, since the module cache believes that what a version
// holds never changes.
func newRelease(ctx context.Context, root string, modules []mod, dir string) (*release, error) {
	r := &release{tree: filepath.Join(dir, "tree"), proxy: filepath.Join(dir, "proxy")}
	commit, err := output(ctx, root, nil, "git", "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return nil, err
	}
	r.version = "v0.0.1-test.g" + commit
	if _, err := output(ctx, root, nil, "git", "clone", "--quiet", "--shared", root, r.tree); err != nil {
		return nil, err
	}
	if err := setVersion(r.tree, modules, r.version); err != nil {
		return nil, err
	}
	_, err = output(ctx, r.tree, nil, "git", "-c", "user.name=packaging", "-c", "user.email=packaging@localhost",
		"commit", "--quiet", "--no-verify", "-am", "Release "+r.version)
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		if err := r.publish(m); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// publish puts a module into the proxy.
func (r *release) publish(m mod) error {
	escaped, err := module.EscapePath(m.path())
	if err != nil {
		return err
	}
	dir := filepath.Join(r.proxy, escaped, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := r.pack(m, filepath.Join(dir, r.version+".zip")); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(r.tree, m.dir, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": r.version, "Time": time.Unix(0, 0).UTC()})
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, r.version+".mod"), mod, 0o644),
		os.WriteFile(filepath.Join(dir, r.version+".info"), info, 0o644),
		os.WriteFile(filepath.Join(dir, "list"), []byte(r.version+"\n"), 0o644))
}

// pack writes a module as the go command packs it from a repository.
func (r *release) pack(m mod, name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	dir := m.dir
	if dir == "." {
		dir = ""
	}
	err = zip.CreateFromVCS(f, r.of(m), r.tree, "HEAD", dir)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("pack %s: %w", m.path(), err)
	}
	return nil
}

func (r *release) of(m mod) module.Version { return module.Version{Path: m.path(), Version: r.version} }

// unpack writes what a module consists of into a folder, and takes away what it
// replaces by ours: only the main module's replacements count, so no user has them.
func (r *release) unpack(m mod, dir string) error {
	name := dir + ".zip"
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := r.pack(m, name); err != nil {
		return err
	}
	if err := zip.Unzip(dir, r.of(m), name); err != nil {
		return fmt.Errorf("unpack %s: %w", m.path(), err)
	}
	name = filepath.Join(dir, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if data, err = asUsersHaveIt(name, data, m); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}

// asUsersHaveIt returns a go.mod without our replacements. Of what others import nothing
// may require what is not released.
func asUsersHaveIt(name string, data []byte, m mod) ([]byte, error) {
	f, err := modfile.Parse(name, data, nil)
	if err != nil {
		return nil, err
	}
	for _, replaced := range f.Replace {
		if isOurs(replaced.Old.Path) {
			if err := f.DropReplace(replaced.Old.Path, replaced.Old.Version); err != nil {
				return nil, err
			}
		}
	}
	for _, required := range f.Require {
		dir, ok := strings.CutPrefix(required.Mod.Path, rootPath+"/")
		if ok && m.shipped() && !(mod{dir}).shipped() {
			return nil, fmt.Errorf("%s requires %s, which is not released", m.path(), required.Mod.Path)
		}
	}
	f.Cleanup()
	return f.Format()
}

func isOurs(path string) bool { return path == rootPath || strings.HasPrefix(path, rootPath+"/") }
