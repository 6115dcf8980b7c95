module github.com/gorm-ryw/gorm-ryw/examples/jobs

go 1.25.0

require (
	github.com/gorm-ryw/gorm-ryw v0.0.0
	github.com/gorm-ryw/gorm-ryw/rywtest v0.0.0
	github.com/riverqueue/river v0.26.0
	github.com/riverqueue/river/riverdriver/riverdatabasesql v0.26.0
	github.com/riverqueue/river/rivertype v0.26.0
	gorm.io/gorm v1.31.2
	gorm.io/plugin/dbresolver v1.6.2
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.13.0 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/jinzhu/inflection v1.0.0 // indirect
	github.com/jinzhu/now v1.1.5 // indirect
	github.com/lib/pq v1.10.9 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	github.com/riverqueue/river/riverdriver v0.26.0 // indirect
	github.com/riverqueue/river/rivershared v0.26.0 // indirect
	github.com/stretchr/testify v1.11.1 // indirect
	github.com/tidwall/gjson v1.18.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.42.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
	gorm.io/driver/postgres v1.6.3 // indirect
)

replace (
	github.com/gorm-ryw/gorm-ryw => ../../
	github.com/gorm-ryw/gorm-ryw/rywtest => ../../rywtest
)
