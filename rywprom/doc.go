// Package rywprom exports what gorm-ryw counts to Prometheus.
//
//	prometheus.MustRegister(rywprom.New(ryw))
//
// The collector reads ryw.Status() at each scrape: no goroutine runs, nothing is asked
// of a server, and no number is kept twice. Tokens that travel are counted where they
// do, so tell it of the middleware and the carriers that the program uses:
//
//	rywprom.New(ryw, rywprom.HTTP(middleware), rywprom.Carrier("jobs", c))
//
// # Two databases
//
// Programs with several plugins give each a label of its own:
//
//	orders := prometheus.WrapRegistererWith(prometheus.Labels{"db": "orders"}, reg)
//	orders.MustRegister(rywprom.New(ryw))
//
// # How many series
//
// Labels are the configured nodes, levels and reasons, all of them few: about 40 series
// for a node. No label has anything from a query, a user or a token.
//
// # Rules and dashboard
//
// rules/ryw.yml has alert rules and dashboard.json a dashboard for Grafana. What each
// series means is in docs/metrics.md.
package rywprom
