package rywprom_test

import (
	"fmt"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/rywhttp"
	"github.com/gorm-ryw/gorm-ryw/rywprom"
	"github.com/prometheus/client_golang/prometheus"
)

func ExampleNew() {
	ryw := rywplugin.New(rywplugin.Config{})
	defer ryw.Close()
	middleware, err := rywhttp.New(rywhttp.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(rywprom.New(ryw, rywprom.HTTP(middleware)))
	families, err := registry.Gather()
	for _, f := range families {
		if f.GetName() == "ryw_http_requests_total" {
			fmt.Println(f.GetName(), f.GetMetric()[0].GetCounter().GetValue(), err)
		}
	}
	// Output:
	// ryw_http_requests_total 0 <nil>
}
