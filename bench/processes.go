package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/gorm-ryw/gorm-ryw/suite_test/workload"
)

// orders are what a process is told by its environment to do instead of measuring.
type orders struct {
	Primary, Replica string
	FirstKey         int64
	Sessions         int           // 0: it only watches
	Lasting          time.Duration // 0: until its input ends
}

const ordersEnv = "BENCH_ORDERS"

// obeyed does what a parent ordered, if there is one.
func obeyed(ctx context.Context) (bool, error) {
	text := os.Getenv(ordersEnv)
	if text == "" {
		return false, nil
	}
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return true, err
	}
	return true, o.obey(ctx)
}

// obey is an application with some sessions under the usual load, until its input
// ends.
func (o orders) obey(ctx context.Context) error {
	r, err := openLibrary(ctx, addresses{primary: o.Primary, replicas: []string{o.Replica}})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // ends when the parent says so, or is gone
		stop()
	}()
	fmt.Println("ready")
	if o.Sessions > 0 {
		load := usual()
		load.Sessions, load.FirstKey, load.Lasting = o.Sessions, o.FirstKey, time.Hour
		_, _, _ = workload.Run(ctx, r, load) // ends with errors of what was under way
	}
	<-ctx.Done()
	return r.close()
}

// crowd is processes with the library on the same servers.
type crowd struct {
	commands []*exec.Cmd
	inputs   []interface{ Close() error }
}

// gather starts processes of which each has some sessions, and returns when all of
// them are at work.
func (g *growth) gather(ctx context.Context, n, sessions int) (*crowd, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &crowd{}
	for range n {
		at := g.site.addresses(false)
		o := orders{Primary: at.primary, Replica: at.replicas[0], Sessions: sessions}
		if o.FirstKey, err = g.site.rows(ctx, max(1, sessions)*usual().Keys); err == nil {
			err = c.start(ctx, own, o)
		}
		if err != nil {
			return nil, errors.Join(err, c.end())
		}
	}
	return c, nil
}

func (c *crowd) start(ctx context.Context, program string, o orders) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), ordersEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.commands, c.inputs = append(c.commands, cmd), append(c.inputs, in)
	if _, err := out.Read(make([]byte, 16)); err != nil {
		return fmt.Errorf("process did not begin: %w", err)
	}
	return nil
}

// end ends all processes and waits for them.
func (c *crowd) end() error {
	var errs []error
	for _, in := range c.inputs {
		_ = in.Close() // it may have ended already
	}
	for _, cmd := range c.commands {
		errs = append(errs, cmd.Wait())
	}
	return errors.Join(errs...)
}

// sessionsEach is how many sessions each process has that is not idle.
const sessionsEach = 4

// processes counts what real processes ask of one replica, idle and with sessions that
// write and read, and works out what a thousand would cost by what a probe costs.
func (g *growth) processes(ctx context.Context) error {
	cost, memory, err := g.costOfProbe(ctx)
	if err != nil {
		return err
	}
	g.figure("probe.server_cpu", cost*1e6, "us")
	g.figure("probe.server_memory_per_connection", memory/(1<<20), "MiB")
	panels := panel{title: "Probes of one replica by many processes", across: "processes", up: "probes per second"}
	for _, kind := range []struct {
		name, title string
		sessions    int
		counts      []int
	}{
		{"idle", "idle", 0, []int{1, 4, 16}},
		{fmt.Sprintf("with_%d_sessions", sessionsEach), fmt.Sprintf("%d sessions in each", sessionsEach), sessionsEach, []int{1, 2, 4, 8, 16}},
	} {
		measured, model := curve{name: kind.title + ", measured"}, curve{name: kind.title + ", model", model: true}
		var perProcess float64
		for _, n := range kind.counts {
			rate, reads, err := g.crowdRate(ctx, n, kind.sessions)
			if err != nil {
				return err
			}
			name := fmt.Sprintf("processes.%d.%s", n, kind.name)
			g.figure(name+".probes_per_second", rate, "1/s")
			g.figure(name+".statements_per_second", reads, "1/s")
			measured.add(float64(n), rate)
			perProcess = max(perProcess, rate/float64(n))
		}
		for _, n := range []int{1, 100, 1000} {
			model.add(float64(n), perProcess*float64(n))
			name := fmt.Sprintf("processes.%d.%s.model", n, kind.name)
			g.figure(name+".probes_per_second", perProcess*float64(n), "1/s")
			g.figure(name+".server_cores", perProcess*float64(n)*cost, "cores")
			g.figure(name+".server_memory", memory*float64(n)/(1<<20), "MiB")
		}
		panels.curves = append(panels.curves, measured, model)
	}
	g.panels = append(g.panels, panels)
	return nil
}

// crowdRate is the replica's position queries and statements per second while
// processes are there.
func (g *growth) crowdRate(ctx context.Context, n, sessions int) (probes, statements float64, err error) {
	c, err := g.gather(ctx, n, sessions)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, c.end()) }()
	const lasting = 4 * time.Second
	if !sleepUntil(ctx, time.Now().Add(time.Second)) {
		return 0, 0, context.Cause(ctx)
	}
	before := g.site.traffic()[1]
	if !sleepUntil(ctx, time.Now().Add(lasting)) {
		return 0, 0, context.Cause(ctx)
	}
	d := g.site.traffic()[1].minus(before)
	return float64(d.questions) / lasting.Seconds(), float64(d.statements) / lasting.Seconds(), nil
}
