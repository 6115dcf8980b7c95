//go:build linux || darwin

package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// RemoveTemplates removes all templates, but for their empty lock files, which others
// may be waiting on. A template that somebody is just making is waited for; one that
// somebody is just copying goes, and the copy fails.
func RemoveTemplates(ctx context.Context) error {
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	locks, err := filepath.Glob(filepath.Join(cache, "pg*.lock"))
	for _, lock := range locks {
		err = errors.Join(err, removeTemplate(ctx, strings.TrimSuffix(lock, ".lock")))
	}
	return err
}

func removeTemplate(ctx context.Context, path string) error {
	lock, err := lockFile(ctx, path+".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	return os.RemoveAll(path)
}
