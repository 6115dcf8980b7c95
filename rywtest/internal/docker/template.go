//go:build linux || darwin

package docker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
)

const (
	// templateFormat changes when templates are made differently.
	templateFormat = "3"
	// templateName is the repository of the templates; their keys are the tags.
	templateName = "gorm-ryw/rywtest-template"
	// homeDir is a volume of each container, empty at first: the engine takes longer
	// to fill one with what an image has there than tar to unpack it.
	homeDir = "/rywtest"
	dataDir = homeDir + "/data"
	packed  = "/rywtest.tar" // the data directory, in the template
)

// idle is the first process of a container. It takes over and clears away
// processes whose parents have ended.
var idle = []string{"-c", "sleep infinity & wait"}

// template returns the name of an image that holds a new database cluster, which
// it makes from another image if there is none yet. A container's name, which the
// engine gives only once, makes all others wait for the first.
func (b *Backend) template(ctx context.Context, image string) (_ string, err error) {
	base, err := b.imageID(ctx, image)
	if err != nil {
		return "", err
	}
	key := b.templateKey(base)
	name, maker := templateName+":"+key, "rywtest-template-"+key
	waited := false
	defer func() {
		if waited && err != nil && ctx.Err() != nil { // whichever call met the end of the context
			err = fmt.Errorf("another process makes %s in container %s: %w", name, maker, err)
		}
	}()
	for {
		if _, err := b.do(ctx, "image", "inspect", "--format={{.Id}}", name); err == nil {
			return name, nil
		}
		err := b.create(ctx, "--name="+maker, image)
		if err == nil {
			return name, b.makeTemplate(ctx, maker, name)
		}
		if !says(err, "is already in use") {
			return "", err
		}
		waited = true
		if err := b.dropOrphan(ctx, maker); err != nil {
			return "", err
		}
		if err := b.pause(ctx, 200*time.Millisecond); err != nil {
			return "", err
		}
	}
}

// makerLife is longer than anybody takes to make a template.
var makerLife = 5 * time.Minute

// dropOrphan removes a container that should have become a template, and whose
// process died without its watchdog, as when the machine went down.
func (b *Backend) dropOrphan(ctx context.Context, maker string) error {
	text, err := b.do(ctx, "inspect", "--type=container", "--format={{.Id}} {{.Created}}", maker)
	if says(err, "No such container") {
		return nil // its process was about to finish
	}
	if err != nil {
		return err
	}
	id, created, _ := strings.Cut(text, " ")
	begin, err := time.Parse(time.RFC3339Nano, created)
	if err != nil {
		return fmt.Errorf("age of container %s: %w", maker, err)
	}
	if time.Since(begin) < makerLife {
		return nil
	}
	_, err = b.do(ctx, "rm", "--force", "--volumes", id)
	return err
}

// create makes a container; the last argument is the image, which is never
// downloaded.
func (b *Backend) create(ctx context.Context, args ...string) error {
	first := []string{"create", "--pull=never", "--user=postgres", "--env=LC_ALL=C", "--entrypoint=sh"}
	_, err := b.do(ctx, slices.Concat(first, b.labels(), args, idle)...)
	return err
}

// imageID returns the id of an image, or what to do about its absence.
func (b *Backend) imageID(ctx context.Context, image string) (string, error) {
	id, err := b.do(ctx, "image", "inspect", "--format={{.Id}}", image)
	switch {
	case err == nil:
		return id, nil
	case says(err, "No such image"):
		return "", fmt.Errorf("%w: the engine has no image %s: run \"docker pull %[2]s\" or, without a registry, "+
			"rywtest/docker/build-image.sh, and name the image in $RYWTEST_IMAGE", backend.ErrNoEngine, image)
	case says(err, ""):
		return "", fmt.Errorf("%w: %w", backend.ErrNoEngine, err)
	}
	return "", err
}

// templateKey differs for whatever makes templates differ.
func (b *Backend) templateKey(base string) string {
	parts := append([]string{templateFormat, base, b.spec.Recorded()}, b.spec.InitdbArgs()...)
	return fmt.Sprintf("%.10x", sha256.Sum256([]byte(strings.Join(parts, "\x00"))))
}

// makeTemplate makes a database cluster in a container and an image of that. The
// image appears at once when it is complete; the container goes last, for those
// who wait for it look for the image next.
func (b *Backend) makeTemplate(ctx context.Context, maker, name string) error {
	err := b.fillTemplate(ctx, maker)
	if err == nil {
		_, err = b.do(ctx, "commit", maker, name)
	}
	_, e := b.do(context.WithoutCancel(ctx), "rm", "--force", "--volumes", maker)
	return errors.Join(err, e)
}

// pack completes a database cluster and packs it. PostgreSQL in single-user mode
// writes the settings that a data directory remembers into it.
const pack = `set -e
cd "$1"
printf '%s' "$2" >>postgresql.conf
printf 'host %s all all trust\n' all replication >>pg_hba.conf
postgres --single -F -D "$1" postgres </dev/null
mv postgresql.conf ` + initialConf + `
tar -C .. -cf ` + packed + ` data
cd /
rm -r "$1"`

func (b *Backend) fillTemplate(ctx context.Context, maker string) error {
	if _, err := b.do(ctx, "start", maker); err != nil {
		return err
	}
	const prepare = "mkdir -m 700 " + homeDir + "; : >" + packed + "; chown postgres " + homeDir + " " + packed
	if _, err := b.do(ctx, "exec", "--user=root", maker, "sh", "-c", prepare); err != nil {
		return err
	}
	args := slices.Concat([]string{"initdb", "--pgdata=" + dataDir}, b.spec.InitdbArgs())
	if _, err := b.exec(ctx, maker, args...); err != nil {
		return err
	}
	_, err := b.exec(ctx, maker, "sh", "-c", pack, "sh", dataDir, b.spec.Recorded())
	return err
}
