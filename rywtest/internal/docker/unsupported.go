//go:build !linux && !darwin

package docker

import (
	"context"
	"fmt"
	"runtime"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
)

// Open fails: the watchdog that removes containers needs a Unix shell.
func Open(context.Context, backend.Spec, string) (backend.Backend, error) {
	return nil, fmt.Errorf("servers in containers need Linux or macOS, this is %s (on Windows run the tests in WSL 2)", runtime.GOOS)
}

// RemoveTemplates has nothing to remove.
func RemoveTemplates(context.Context) error { return nil }

// RemoveLeftovers has nothing to remove.
func RemoveLeftovers(context.Context) error { return nil }
