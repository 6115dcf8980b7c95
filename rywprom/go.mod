module github.com/gorm-ryw/gorm-ryw/rywprom

go 1.25.0

require github.com/gorm-ryw/gorm-ryw v0.0.0

require github.com/prometheus/client_golang v1.23.2 // indirect

replace github.com/gorm-ryw/gorm-ryw => ../
