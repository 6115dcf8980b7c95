// Package rywhttp carries tokens over HTTP: from and to browsers and clients by a
// middleware, and to other services by a round-tripper.
//
//	ryw, err := rywhttp.New(rywhttp.Config{})
//	http.ListenAndServe(addr, ryw.Wrap(mux))
//
//	// in a handler: the context has the client's session
//	db.WithContext(r.Context()).Create(&order)
//
//	// calling another service on the client's behalf
//	client := &http.Client{Transport: &rywhttp.Transport{}}
//	req, err := http.NewRequestWithContext(r.Context(), …)
//
// Wrap is a middleware as chi and net/http know it; gin and echo take it as well
// (see the examples module). A handler must use the request's context, or one made
// from it, for its queries: a query with context.Background() is the dropped hop
// that this package is about.
//
// # What travels
//
// The token goes back in a header, for clients that are programs, and in cookies,
// for browsers; both come in. The headers of the response say it before its first
// byte is sent, whatever its status: when the handler wrote, by whatever method, or
// read something that the client must not fall behind. A handler that sent no
// statement sets nothing. A write that failed counts as a read: who was told of a
// duplicate key must find that row.
//
// A program merges what comes back, as Transport does. One that just repeats the
// newest header it got has to wait for a response to end before it goes on.
//
// # Cookies
//
// Their names are "ryw-w-" for writes and "ryw-f-" for what was read, with five
// random characters behind. A response never writes over a cookie: it sets a new
// one that includes all its request came with and removes those. So whatever order
// the responses to concurrent requests arrive in, a browser does not come to hold
// less. There are usually one or two of them, of some 60 bytes, or 110 if signed;
// after a page that makes n requests at once up to n, until the next response
// (Cookie.Slots bounds that, at a price). Floors never go on a response that a
// shared cache may keep.
//
// A cookie covers one browser. For one user's several devices, and for clients that
// drop cookies, Config.Store keeps tokens on the server, by whatever key StoreKey
// says: MemoryStore in one process, package rywredis for many. It is asked once for a
// request, and once more when there is something to keep.
//
// # Requests without a token
//
// A new visitor has none, and neither has a client that drops headers and cookies;
// they cannot be told apart. Config.Missing says what becomes of them, and Stats
// counts them. For a web site whose visitors keep cookies, MissingStale is what
// one wants: nobody without a cookie has written anything in the last 24 hours. A
// token that is invalid is never taken for none.
//
// # Late writes
//
// What a handler writes after the headers have left cannot be put into them. If a
// transaction is open at that moment, a mark goes ahead that has the next request
// find the position of what it will have committed. Otherwise the write is counted
// (Stats.Late), and with Config.Strict the response is broken off: the client then
// does not take for done what it might not find. Write first, then answer.
//
// # What a client can do
//
// Tokens are no secret and no permission: one that a client makes up can make its
// own reads wait a moment and then be served by the primary, no more. With
// Config.Signer it cannot even do that; only replay what it was once given. What a
// request may hold is bounded (MaxCookies, token.MaxText), and nothing that a
// client sent is put into a log.
package rywhttp
