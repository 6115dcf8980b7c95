package adminpage_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

func address(s *rywtest.Server) string { return fmt.Sprintf("127.0.0.1:%d", s.Port()) }

// The page is opened once and never again: it shows by itself what happens to the
// servers.
func TestPageFollowsTheServers(t *testing.T) {
	b := newBrowser(t)
	a := newApp(t)
	ctx := t.Context()
	primary, r0, r1 := a.servers.Primary(), a.servers.Replica(0), a.servers.Replica(1)
	p, n0, n1 := address(primary), address(r0), address(r1)
	a.writes(50)
	b.as(1200, 900, "light")
	b.do(chromedp.Navigate(a.url))
	value[string](b, "window.opened = 'once'")
	b.shows(p, "primary")
	b.shows(n0, "caught up")
	b.shows(n1, "caught up")

	must(t, r0.PauseReplay(ctx))
	a.writes(50)
	b.shows(n0, "behind")
	b.shows(n1, "caught up")
	b.await("that replay is paused", fmt.Sprintf(`document.querySelector('#nodes tr[data-node=%q]').innerText.includes('replay paused')`, n0))
	b.await("a fallback", `document.querySelector('#decisions tr[data-reason]') !== null`)
	b.await("the change is said", fmt.Sprintf(`document.getElementById('say').textContent === %q`, n0+": behind"))

	must(t, r1.Kill(ctx))
	b.shows(n1, "unknown")
	a.writes(20)
	b.await("reads that fell back", `document.getElementById('reads').innerText.includes('replicas are behind')`)
	b.await("a plot of the lag", `document.querySelectorAll('#plots polyline').length >= 3`)
	time.Sleep(6 * time.Second) // something to be seen in the pictures
	for _, scheme := range []string{"light", "dark"} {
		b.as(1200, 900, scheme)
		b.picture(scheme)
		b.readable()
		b.as(390, 844, scheme)
		b.picture("phone-" + scheme)
		b.readable()
	}
	b.as(1200, 900, "light")

	const alarm = `document.querySelector('#alarms .alarm')?.getClientRects()[0]?.top < innerHeight`
	for _, m := range []policy.Mode{policy.PrimaryOnly, policy.PlainResolver} {
		must(t, a.ryw.Tune(func(tn *rywplugin.Tuning) { tn.Mode = m }))
		b.await("that the mode is "+m.String(), fmt.Sprintf("%s && document.title.startsWith('Mode %s!')", alarm, m))
		b.readable()
	}
	b.picture("mode")
	must(t, a.ryw.Tune(func(tn *rywplugin.Tuning) { tn.Mode = policy.Normal }))
	b.await("that the mode is Normal", "document.querySelector('#alarms .alarm') === null")

	must(t, r0.ResumeReplay(ctx))
	must(t, r1.Start(ctx))
	b.shows(n0, "caught up")
	b.shows(n1, "caught up")

	must(t, primary.Kill(ctx))
	must(t, r1.Promote(ctx))
	b.shows(p, "unknown")
	b.shows(n1, "promoted")
	b.picture("promoted")

	must(t, primary.Start(ctx)) // the failover is taken back
	must(t, r1.Follow(ctx, primary))
	a.writes(5)
	b.shows(p, "primary")
	b.shows(n0, "caught up")
	b.shows(n1, "caught up")

	if have := value[string](b, "String(window.opened)"); have != "once" {
		t.Errorf("the page was opened again: have %s", have)
	}
	b.quiet(a.url)
}
