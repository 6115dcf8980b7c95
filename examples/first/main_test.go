package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

// TestREADME holds the README to the program that is compiled and run here.
func TestREADME(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(program), "package main\n")
	if !strings.Contains(string(readme), "package main\n"+code) {
		t.Error("README.md does not contain this program as it is")
	}
}

func TestProgram(t *testing.T) {
	c, err := rywtest.Start(context.Background(), rywtest.Options{Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	cmd := exec.Command("go", "run", ".")
	cmd.Env = append(os.Environ(), "PRIMARY="+c.Primary().DSN(), "REPLICA="+c.Replica(0).DSN())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "read your writes from ") {
		t.Fatalf("program: %v\n%s", err, out)
	}
}
