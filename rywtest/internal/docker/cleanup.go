//go:build linux || darwin

package docker

import (
	"context"
	"os/exec"
)

// RemoveTemplates removes the images that clusters were made from, but not those
// that containers use.
func RemoveTemplates(ctx context.Context) error {
	call, err := engine()
	if err != nil {
		return err
	}
	return removeAll(ctx, call, []string{"image", "ls", "--quiet", "--filter=reference=" + templateName}, "image", "rm")
}

// RemoveLeftovers removes the containers, volumes and networks of all clusters,
// whoever made them and whether they are used or not.
func RemoveLeftovers(ctx context.Context) error {
	call, err := engine()
	if err != nil {
		return err
	}
	return remove(ctx, call, labelName)
}

// engine returns the command line of the engine, outside of any cluster.
func engine() (caller, error) {
	client, err := findClient()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, args ...string) (string, error) {
		return run(ctx, exec.CommandContext(ctx, client, args...))
	}, nil
}
