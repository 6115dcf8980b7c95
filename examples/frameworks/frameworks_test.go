package frameworks

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/gorm-ryw/gorm-ryw/rywhttp"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"
)

// save stands for db.WithContext(ctx).Save(&order).
func save(ctx context.Context) {
	s, _ := session.FromContext(ctx)
	s.MarkWrote(token.Key{})
}

// load stands for db.WithContext(ctx).First(&order), and returns what it must see.
func load(ctx context.Context) string {
	s, _ := session.FromContext(ctx)
	return s.Token().String()
}

func onChi(ryw *rywhttp.Middleware) http.Handler {
	r := chi.NewRouter()
	r.Use(ryw.Wrap, chimiddleware.Recoverer, chimiddleware.Compress(5))
	r.Patch("/orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		save(r.Context())
		http.Redirect(w, r, "/orders/"+chi.URLParam(r, "id"), http.StatusSeeOther)
	})
	r.Delete("/orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		save(r.Context())
		w.WriteHeader(http.StatusNoContent)
	})
	r.Post("/orders", func(w http.ResponseWriter, r *http.Request) {
		save(r.Context())
		for range 3 {
			_, _ = io.WriteString(w, "data: x\n\n")
			w.(http.Flusher).Flush()
		}
	})
	r.Post("/bug", func(_ http.ResponseWriter, r *http.Request) { save(r.Context()); panic("bug") })
	r.Get("/orders/{id}", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, load(r.Context())) })
	r.Get("/about", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "about") })
	return r
}

// Under gin the middleware stands around the engine: gin's own come after it.
func onGin(ryw *rywhttp.Middleware) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.Use(gin.RecoveryWithWriter(io.Discard))
	e.PATCH("/orders/:id", func(c *gin.Context) {
		save(c.Request.Context())
		c.Redirect(http.StatusSeeOther, "/orders/"+c.Param("id"))
	})
	e.DELETE("/orders/:id", func(c *gin.Context) {
		save(c.Request.Context())
		c.Status(http.StatusNoContent)
	})
	e.POST("/orders", func(c *gin.Context) {
		save(c.Request.Context())
		n := 0
		c.Stream(func(io.Writer) bool {
			c.SSEvent("message", "x")
			n++
			return n < 3
		})
	})
	e.POST("/bug", func(c *gin.Context) { save(c.Request.Context()); panic("bug") })
	e.GET("/orders/:id", func(c *gin.Context) { c.String(http.StatusOK, load(c.Request.Context())) })
	e.GET("/about", func(c *gin.Context) { c.String(http.StatusOK, "about") })
	return ryw.Wrap(e)
}

func onEcho(ryw *rywhttp.Middleware) http.Handler {
	e := echo.New()
	e.Use(echo.WrapMiddleware(ryw.Wrap), echomiddleware.Recover())
	e.Logger.SetOutput(io.Discard)
	e.PATCH("/orders/:id", func(c echo.Context) error {
		save(c.Request().Context())
		return c.Redirect(http.StatusSeeOther, "/orders/"+c.Param("id"))
	})
	e.DELETE("/orders/:id", func(c echo.Context) error {
		save(c.Request().Context())
		return c.NoContent(http.StatusNoContent)
	})
	e.POST("/orders", func(c echo.Context) error {
		save(c.Request().Context())
		for range 3 {
			if _, err := io.WriteString(c.Response(), "data: x\n\n"); err != nil {
				return err
			}
			c.Response().Flush()
		}
		return nil
	})
	e.POST("/bug", func(c echo.Context) error { save(c.Request().Context()); panic("bug") })
	e.GET("/orders/:id", func(c echo.Context) error { return c.String(http.StatusOK, load(c.Request().Context())) })
	e.GET("/about", func(c echo.Context) error { return c.String(http.StatusOK, "about") })
	return e
}

func TestFrameworks(t *testing.T) {
	for name, build := range map[string]func(*rywhttp.Middleware) http.Handler{"chi": onChi, "gin": onGin, "echo": onEcho} {
		t.Run(name, func(t *testing.T) {
			ryw, err := rywhttp.New(rywhttp.Config{Missing: rywhttp.MissingStale})
			if err != nil {
				t.Fatal(err)
			}
			srv := httptest.NewServer(build(ryw))
			defer srv.Close()
			for _, c := range []struct {
				request string
				status  int
				writes  bool
			}{
				{"PATCH /orders/7", http.StatusSeeOther, true},
				{"DELETE /orders/7", http.StatusNoContent, true},
				{"POST /orders", http.StatusOK, true},
				{"POST /bug", http.StatusInternalServerError, true},
				{"GET /about", http.StatusOK, false},
				{"GET /nowhere", http.StatusNotFound, false},
			} {
				resp, _ := send(t, srv, c.request, "")
				wrote := resp.Header.Get(rywhttp.DefaultHeader) != "" && strings.HasPrefix(resp.Header.Get("Set-Cookie"), "ryw-w-")
				if resp.StatusCode != c.status || wrote != c.writes {
					t.Errorf("%s: have status %d, headers %v", c.request, resp.StatusCode, resp.Header)
				}
			}
			const tok = "r1.AQQAAAAAAwAAYA"
			if _, body := send(t, srv, "GET /orders/7", tok); body != tok {
				t.Errorf("the handler has to see %q, want %q", body, tok)
			}
			if have := ryw.Stats(); have.Requests != 7 || have.Sent != 4 || have.Late != 0 {
				t.Errorf("have %+v", have)
			}
		})
	}
}

func send(t *testing.T, srv *httptest.Server, request, tok string) (resp *http.Response, body string) {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	req, err := http.NewRequest(method, srv.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if tok != "" {
		req.Header.Set(rywhttp.DefaultHeader, tok)
	}
	client := srv.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err = client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(raw)
}
