// Command findpg says which PostgreSQL server programs rywtest uses on this
// machine, and offers to install them where there are none.
//
//	go run ./rywtest/cmd/findpg
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/pgbin"
)

func main() {
	ctx := context.Background()
	found, err := pgbin.Find(ctx, "")
	if err == nil {
		fmt.Printf("%s in %s\n", found.Version, found.Dir)
		return
	}
	fmt.Fprintln(os.Stderr, err)
	if !offer(ctx) {
		os.Exit(1)
	}
}

// offer asks whether to run this platform's install command, and runs it.
func offer(ctx context.Context) bool {
	command := installCommand()
	if command == "" {
		return false
	}
	fmt.Fprintf(os.Stderr, "\nRun %q now? [y/N] ", command)
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n') // none is a no
	if strings.ToLower(strings.TrimSpace(answer)) != "y" {
		return false
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run() == nil
}

// installCommand is the command of the package manager that is here.
func installCommand() string {
	for _, c := range pgbin.InstallCommands {
		fields := strings.Fields(strings.TrimPrefix(c, "sudo "))
		if _, err := exec.LookPath(fields[0]); err == nil {
			if os.Geteuid() == 0 {
				return strings.TrimPrefix(c, "sudo ")
			}
			return c
		}
	}
	return ""
}
