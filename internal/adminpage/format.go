package adminpage

import (
	"fmt"
	"strconv"
	"time"
)

func appendSeconds(b []byte, s Seconds) []byte {
	return strconv.AppendFloat(b, time.Duration(s).Seconds(), 'f', -1, 64)
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05") + " UTC" }

// duration is a time with two or three digits that matter.
func duration(d time.Duration) string {
	switch {
	case d <= 0:
		return "0"
	case d < time.Millisecond:
		return strconv.FormatInt(max(1, d.Microseconds()), 10) + " µs"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}

// roughly is a time in one unit.
func roughly(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h"
	}
	return strconv.Itoa(int(d.Hours())/24) + " days"
}

func size(n uint64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return strconv.FormatUint(n, 10) + " B"
	}
	f, i := float64(n)/1000, 0
	for f >= 999.95 && i < len(units)-1 {
		f /= 1000
		i++
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + " " + units[i:i+1] + "B"
}

func percent(share float64) string {
	return strconv.FormatFloat(100*share, 'f', 1, 64) + " %"
}

// count is a number with its thousands apart, by narrow spaces that do not break.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && n >= 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}
