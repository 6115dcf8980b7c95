package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
)

// Modes: what routes the workers' reads.
const (
	modeRYW        = "ryw"        // the library
	modeDBResolver = "dbresolver" // dbresolver alone: a control
	modeCached     = "cached"     // one replica's position, asked for every 100 ms: a control
)

// Roads to the library: which dialector the workers use.
const (
	roadPostgres = "postgres"
	roadRYWPGX   = "rywpgx"
	roadBoth     = "both"
)

// How a worker finds the primary.
const (
	endpointMoving = "moving" // one address that is led to the new primary
	endpointHosts  = "hosts"  // all servers, target_session_attrs=read-write
	endpointBoth   = "both"
)

// Options say what is run.
type Options struct {
	Duration time.Duration
	Seed     uint64
	Procs    int
	Mode     string
	Road     string
	Endpoint string
	// Lossless makes failovers wait for the standbys, so that no acknowledged
	// write is lost.
	Lossless bool
	// Strict has the library close the blind spot, at the price of reads that it
	// refuses.
	Strict bool
	// Print prints that many steps of the schedule instead of running it.
	Print int
	// Crashes, if not 0, is how many crashes of standbys are run instead of the
	// schedule, see NewCrashes; Duration does not count then.
	Crashes int
	// Probe is the workers' Config.ProbeInterval; 0 is the library's default.
	Probe time.Duration
	// Verbose prints each step as it begins.
	Verbose bool
	// Only, if not empty, is the number of the single kind of fault to run.
	Only int
}

// control reports whether the mode is expected to break the guarantees.
func (o *Options) control() bool { return o.Mode != modeRYW }

// noticed is how long a server must have answered for the library to know that it
// does: its watcher asks once in that interval, plus a quarter at random.
func (o *Options) noticed() time.Duration {
	probe := o.Probe
	if probe == 0 {
		probe = rywplugin.DefaultProbeInterval
	}
	return probe + probe/4 + 750*time.Millisecond
}

// schedule is what the options have done to the servers.
func (o *Options) schedule() *Schedule {
	if o.Crashes > 0 {
		return NewCrashes(o.Seed)
	}
	return NewSchedule(o.Seed, o.Lossless)
}

// parseOptions reads the command line. Its errors were not printed yet.
func parseOptions(args []string, help io.Writer) (*Options, error) {
	o := &Options{}
	fs := flag.NewFlagSet("torture", flag.ContinueOnError)
	fs.SetOutput(help)
	fs.DurationVar(&o.Duration, "duration", 10*time.Minute, "for how long faults are injected")
	fs.Uint64Var(&o.Seed, "seed", 1, "of the schedule of faults and of the workload's choices")
	fs.IntVar(&o.Procs, "procs", 6, "worker processes, at least 3")
	fs.StringVar(&o.Mode, "mode", modeRYW, "ryw, or one of the controls dbresolver and cached, which must be seen to break the guarantees")
	fs.StringVar(&o.Road, "road", roadBoth, "postgres, rywpgx, or both: half of the workers each")
	fs.StringVar(&o.Endpoint, "endpoint", endpointBoth, "how workers find the primary: moving, hosts, or both: half of the workers each")
	fs.BoolVar(&o.Lossless, "lossless", false, "let no failover lose an acknowledged write")
	fs.BoolVar(&o.Strict, "strict", false, "run the library in mode MonotonicStrict, and excuse no blind spot")
	fs.IntVar(&o.Print, "print", 0, "print that many `steps` of the schedule and run nothing")
	fs.IntVar(&o.Only, "only", -1, "inject faults of this `kind` only, see -print; for narrowing down")
	fs.IntVar(&o.Crashes, "crashes", 0, "run that many crashes of standbys instead of the schedule, whatever the -duration: each behind 100 MB of WAL, under readers that never pause and with pools of few connections")
	fs.DurationVar(&o.Probe, "probe", 0, "ProbeInterval of the workers; 0 is the library's default")
	fs.BoolVar(&o.Verbose, "v", false, "print each fault as it begins")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	return o, o.validate()
}

func (o *Options) validate() error {
	switch {
	case o.Duration <= 0:
		return fmt.Errorf("-duration: have %s, want more than 0", o.Duration)
	case o.Procs < len(roles):
		return fmt.Errorf("-procs: have %d, want %d or more", o.Procs, len(roles))
	case o.Strict && o.control():
		return fmt.Errorf("-strict: want -mode %s, have %s", modeRYW, o.Mode)
	case o.Only >= int(kinds):
		return fmt.Errorf("-only: have %d, want less than %d", o.Only, kinds)
	case o.Crashes < 0:
		return fmt.Errorf("-crashes: have %d, want 0 or more", o.Crashes)
	case o.Crashes > 0 && o.Only >= 0 && !Kind(o.Only).crashes():
		return fmt.Errorf("-only: have %q, want a crash of a standby, for -crashes", Kind(o.Only))
	case o.Probe < 0:
		return fmt.Errorf("-probe: have %s, want 0 or more", o.Probe)
	}
	return errors.Join(
		oneOf("-mode", o.Mode, modeRYW, modeDBResolver, modeCached),
		oneOf("-road", o.Road, roadPostgres, roadRYWPGX, roadBoth),
		oneOf("-endpoint", o.Endpoint, endpointMoving, endpointHosts, endpointBoth))
}

func oneOf(name, have string, want ...string) error {
	for _, w := range want {
		if have == w {
			return nil
		}
	}
	return fmt.Errorf("%s: have %q, want one of %q", name, have, want)
}
