package main

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"
)

// A worker ends at once when its parent is gone, whatever it is doing.
func TestWorkerEndsWithItsParent(t *testing.T) {
	for name, first := range map[string]toWorker{
		"without orders":   {},
		"while connecting": {Orders: &Orders{Name: "w", Mode: modeRYW, Road: roadPostgres, Primary: dsn("127.0.0.1:1", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), envWorker+"=w")
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if first.Orders != nil {
				if err := (&lines{w: stdin}).send(first); err != nil {
					t.Fatal(err)
				}
			}
			stdin.Close()
			began := time.Now()
			err = cmd.Wait()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() < 1 || time.Since(began) > connectFor/2 {
				t.Errorf("have %v after %s", err, time.Since(began))
			}
		})
	}
}
