//go:build !linux && !darwin

package local

import (
	"context"
	"fmt"
	"runtime"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
)

// Open fails: the signals that stop, freeze and kill servers exist on Linux and
// macOS only.
func Open(context.Context, backend.Spec) (backend.Backend, error) {
	return nil, fmt.Errorf("local servers need Linux or macOS, this is %s (on Windows run the tests in WSL 2)", runtime.GOOS)
}

// RemoveTemplates has nothing to remove.
func RemoveTemplates(context.Context) error { return nil }
