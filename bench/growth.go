package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// growth shows what becomes of costs as work grows. Its curves are drawn.
type growth struct {
	site *site
	*report
	panels []panel
}

// runGrowth measures and draws into a file.
func runGrowth(ctx context.Context, r *report, file string) (err error) {
	s, err := openSite(ctx, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	g := &growth{site: s, report: r}
	for _, part := range []struct {
		title string
		run   func(context.Context) error
	}{
		{"Sessions and waiters in memory, waiters woken: one replica that stands still, then goes on", g.waiting},
		{"Reads that wait for one replica, 20 ms behind, with a write every 5 ms", g.demanding},
		{"Real processes on one replica, and a model of more", g.processes},
	} {
		r.heading(part.title)
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.title, err)
		}
	}
	return os.WriteFile(file, []byte(draw(g.panels)), 0o644)
}
