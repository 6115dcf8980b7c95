module github.com/gorm-ryw/gorm-ryw/rywotel

go 1.25.0

require (
	github.com/gorm-ryw/gorm-ryw v0.0.0
	go.opentelemetry.io/otel v1.38.0
)

require go.opentelemetry.io/otel/trace v1.38.0 // indirect

replace github.com/gorm-ryw/gorm-ryw => ../
