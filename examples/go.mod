module github.com/gorm-ryw/gorm-ryw/examples

go 1.25.0
