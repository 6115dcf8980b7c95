module github.com/gorm-ryw/gorm-ryw/bench

go 1.25.0
