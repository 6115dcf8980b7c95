package adminpage

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// ServeHTTP answers with the page, or with the same as JSON: where the path ends in
// status.json, the query says format=json, or the client prefers JSON. It works
// under any prefix, stripped or not. What it shows may be filtered by where, node
// and reason in the query.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Add("Vary", "Accept")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "read-only", http.StatusMethodNotAllowed)
		return
	}
	q := r.URL.Query()
	keep := Filter{Where: q.Get("where"), Node: q.Get("node"), Reason: q.Get("reason")}
	now := time.Now()
	if wantsJSON(r) {
		h.Set("Content-Type", "application/json")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(p.snapshot(now, keep)) // the client may be gone
		return
	}
	nonce := rand.Text()
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, p.view(now, keep, nonce)); err != nil {
		http.Error(w, "gorm-ryw: the page could not be made", http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", strings.ReplaceAll(contentPolicy, "NONCE", nonce))
	_, _ = page.WriteTo(w) // the client may be gone
}

// contentPolicy lets the page's own script and style run, once, and the script ask
// for the page again. Nothing comes from anywhere else.
const contentPolicy = "default-src 'none'; script-src 'nonce-NONCE'; style-src 'nonce-NONCE'; " +
	"connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"

func wantsJSON(r *http.Request) bool {
	if f := r.URL.Query().Get("format"); f != "" {
		return f == "json"
	}
	if strings.HasSuffix(r.URL.Path, "status.json") {
		return true
	}
	accept := strings.Join(r.Header.Values("Accept"), ",")
	json, html := strings.Index(accept, "application/json"), strings.Index(accept, "text/html")
	return json >= 0 && (html < 0 || json < html)
}
