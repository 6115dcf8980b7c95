package rywhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/gorm-ryw/gorm-ryw/rywhttp"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// write stands for a statement of the plugin with the context of a request.
func write(r *http.Request) {
	s, _ := session.FromContext(r.Context())
	s.MarkWrote(token.Key{})
}

func Example() {
	ryw, err := rywhttp.New(rywhttp.Config{Missing: rywhttp.MissingStale})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("PATCH /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		write(r) // db.WithContext(r.Context()).Save(&order)
		http.Redirect(w, r, "/orders/7", http.StatusSeeOther)
	})
	mux.HandleFunc("GET /about", func(http.ResponseWriter, *http.Request) {})
	site := ryw.Wrap(mux)

	answer := httptest.NewRecorder()
	site.ServeHTTP(answer, httptest.NewRequest("PATCH", "/orders/7", nil))
	for _, c := range answer.Result().Cookies() {
		fmt.Println(answer.Code, c.Name[:len("ryw-w-")], c.MaxAge, c.HttpOnly, c.Secure)
	}
	fmt.Println("header", answer.Header().Get(rywhttp.DefaultHeader) != "")

	answer = httptest.NewRecorder()
	site.ServeHTTP(answer, httptest.NewRequest("GET", "/about", nil))
	fmt.Println(answer.Code, len(answer.Header()), "headers")
	fmt.Printf("%+v\n", ryw.Stats())
	// Output:
	// 303 ryw-w- 86400 true true
	// header true
	// 200 0 headers
	// {Requests:2 Missing:2 Invalid:0 Refused:0 Sent:1 Ahead:0 Late:0 StoreFailed:0}
}

func ExampleTransport() {
	ryw, err := rywhttp.New(rywhttp.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	stock := httptest.NewServer(ryw.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { write(r) })))
	defer stock.Close()

	shop := ryw.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, stock.URL, strings.NewReader("order 7"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		client := &http.Client{Transport: &rywhttp.Transport{}}
		resp, err := client.Do(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		resp.Body.Close()
	}))
	answer := httptest.NewRecorder()
	shop.ServeHTTP(answer, httptest.NewRequest("POST", "/", nil))
	tok, err := token.Parse(answer.Header().Get(rywhttp.DefaultHeader))
	fmt.Println("the browser holds what the other service wrote:", tok.At(0).Wrote, err)
	// Output:
	// the browser holds what the other service wrote: true <nil>
}
