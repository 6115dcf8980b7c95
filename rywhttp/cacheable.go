package rywhttp

import (
	"net/http"
	"strings"
)

// publiclyCacheable reports whether a shared cache may hand the response to other
// people: what it says of one reader's floor is not for them. It looks at what a
// response says explicitly; without that, caches leave alone what sets a cookie.
func publiclyCacheable(h http.Header) bool {
	if has(h, "Cdn-Cache-Control", "max-age", "s-maxage", "public") || has(h, "Surrogate-Control", "max-age") {
		return true
	}
	if has(h, "Cache-Control", "no-store", "private") {
		return false
	}
	return has(h, "Cache-Control", "public", "s-maxage", "max-age") || h.Get("Expires") != ""
}

// has reports whether a header has one of the directives, and not with 0 as its
// number: max-age=0 is the opposite.
func has(h http.Header, header string, directives ...string) bool {
	for _, line := range h[header] {
		for part := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			if value == "0" {
				continue
			}
			for _, d := range directives {
				if strings.EqualFold(name, d) {
					return true
				}
			}
		}
	}
	return false
}
