package rywplugin

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/adminpage"
	"github.com/gorm-ryw/gorm-ryw/policy"
)

// Mode implements adminpage.Source.
func (s adminSource) Mode() adminpage.Mode {
	m := s.p.Tuning().Mode
	_, means := meaning(m)
	return adminpage.Mode{Name: m.String(), Means: means, Normal: m == policy.Normal, Guaranteed: m != policy.PlainResolver}
}

// Settings implements adminpage.Source: what the plugin goes by at the moment.
func (s adminSource) Settings() []adminpage.Setting {
	c, t, now := s.p.cfg, s.p.Tuning(), s.p.router.Settings()
	return []adminpage.Setting{
		{Name: "Mode", Value: t.Mode.String()},
		{Name: "Default", Value: t.Default.String()},
		{Name: "Balancer", Value: strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", now.Balancer), "*"), "policy.")},
		{Name: "MaxWait", Value: orNone(t.MaxWait, "no wait")},
		{Name: "MaxTokenAge", Value: orNone(t.MaxTokenAge, "any")},
		{Name: "Window", Value: orNone(t.Window, "none")},
		{Name: "Fallback", Value: fallbackText(t.Fallback)},
		{Name: "Rotation", Value: rotationText(t.Rotation)},
		{Name: "Monotonic", Value: now.Monotonic.String()},
		{Name: "CaptureTimeout", Value: c.CaptureTimeout.String()},
		{Name: "LazyCapture", Value: strconv.FormatBool(c.LazyCapture)},
		{Name: "ProbeInterval", Value: c.ProbeInterval.String()},
		{Name: "ProbeTimeout", Value: c.ProbeTimeout.String()},
		{Name: "Cluster", Value: orWord(c.Cluster, "no name")},
		{Name: "TrustPools", Value: strconv.FormatBool(c.TrustPools)},
		{Name: "SafeFunctions", Value: orWord(strings.Join(c.SafeFunctions, ", "), "none")},
		{Name: "WritingFunctions", Value: orWord(strings.Join(c.WritingFunctions, ", "), "none")},
		{Name: "PrimaryTables", Value: orWord(strings.Join(c.PrimaryTables, ", "), "none")},
	}
}

// fallbackText is the caps and what becomes of a read above one.
func fallbackText(f policy.Fallback) string {
	var caps []string
	if f.Rate > 0 {
		caps = append(caps, fmt.Sprintf("%g a second", f.Rate))
	}
	if f.Burst > 0 {
		caps = append(caps, fmt.Sprintf("%d at once", f.Burst))
	}
	if f.Concurrent > 0 {
		caps = append(caps, fmt.Sprintf("%d under way", f.Concurrent))
	}
	if caps == nil {
		return "no cap"
	}
	then := "fails"
	if f.Stale {
		then = "is served stale"
	}
	return fmt.Sprintf("at most %s; what is above waits %s, then %s", strings.Join(caps, ", "), orNone(f.Wait, "not at all"), then)
}

func rotationText(r policy.Rotation) string {
	if r.High <= 0 {
		return "none"
	}
	return fmt.Sprintf("out above %s, back after %s below %s, %d always in, stuck after %s", r.High, r.Settle, r.Low, r.Keep, r.StuckAfter)
}

func orNone(d time.Duration, none string) string {
	if d <= 0 {
		return none
	}
	return d.String()
}

func orWord(s, none string) string {
	if s == "" {
		return none
	}
	return s
}
