package backend

import (
	"maps"
	"slices"
	"strings"
)

// Config is what the kit wants a server to run with.
type Config struct {
	// Settings are written in the order of their names.
	Settings map[string]string
	// PrimaryConninfo makes the server a standby; empty makes it a primary.
	PrimaryConninfo string
}

// Render returns settings as text for postgresql.conf.
func Render(settings map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		b.WriteString(name + " = " + quote(settings[name]) + "\n")
	}
	return b.String()
}

var quoter = strings.NewReplacer(`'`, `''`, `\`, `\\`, "\n", `\n`)

func quote(value string) string { return "'" + quoter.Replace(value) + "'" }
