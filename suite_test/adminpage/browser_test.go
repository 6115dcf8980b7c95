package adminpage_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is one tab of a Chromium without a window.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex // protects what follows
	asked    []string   // addresses
	problems []string   // what the browser complains of
}

// newBrowser starts a browser, which ends with the test.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("chromium is not in the PATH")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.DisableGPU)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	tab, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(tab) // the browser is ended either way
		closeTab()
	})
	b := &browser{t: t, ctx: tab}
	must(t, chromedp.Listen(tab, b.note))
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := cdp.Call(ctx, t, network.Enable, network.EnableParams{}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, t, log.Enable, cdp.Empty{})
		return err
	}))
	return b
}

func (b *browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	case *log.EventEntryAdded:
		b.problems = append(b.problems, e.Entry.Text)
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, fmt.Sprint(e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		b.problems = append(b.problems, fmt.Sprint("console: ", e.Type))
	}
}

// do runs actions, which must succeed in time.
func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// got is what an action gives, which must do so in time.
func got[T any](b *browser, a chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// await waits until a JavaScript expression holds, without touching the page.
func (b *browser) await(what, js string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](js, chromedp.WithPollingInterval(50*time.Millisecond))); err != nil {
		b.t.Fatalf("not shown: %s: %v\n%s", what, err, value[string](b, "location.search + '\\n' + document.querySelector('main').innerText"))
	}
}

// value is that of a JavaScript expression.
func value[T any](b *browser, js string) T {
	b.t.Helper()
	return got(b, chromedp.Evaluate[T](js))
}

// shows waits until the page shows a server in a state.
func (b *browser) shows(server, state string) {
	b.t.Helper()
	b.await(server+" "+state, fmt.Sprintf(`document.querySelector('#nodes tr[data-node=%q]')?.dataset.state === %q`, server, state))
}

// as sets the size and the colour scheme.
func (b *browser) as(width, height int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

// picture keeps what the page looks like in $ADMINPAGE_PICTURES, if that is set.
func (b *browser) picture(name string) {
	b.t.Helper()
	png := got(b, chromedp.FullScreenshot(100))
	if dir := os.Getenv("ADMINPAGE_PICTURES"); dir != "" {
		must(b.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
	}
}

// quiet fails if the browser has complained, or asked for anything elsewhere.
func (b *browser) quiet(prefix string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.problems) > 0 {
		b.t.Errorf("the browser complains: %q", b.problems)
	}
	if len(b.asked) == 0 {
		b.t.Error("no request was seen")
	}
	for _, url := range b.asked {
		if !strings.HasPrefix(url, prefix) && !strings.HasPrefix(url, "data:") {
			b.t.Errorf("asked for %s, want nothing but %s", url, prefix)
		}
	}
}
