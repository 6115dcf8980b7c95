package history

import (
	"fmt"
	"os"
	"time"
)

// localClock returns a clock whose times mean nothing in another process.
func localClock(process string) clock {
	origin := time.Now()
	domain := fmt.Sprintf("%s/%d/%d", process, os.Getpid(), origin.UnixNano())
	return clock{domain: domain, origin: origin, base: 1}
}
