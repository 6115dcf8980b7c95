module github.com/gorm-ryw/gorm-ryw/packaging

go 1.25.0

require (
	github.com/google/licensecheck v0.3.1
	golang.org/x/mod v0.38.0
)
