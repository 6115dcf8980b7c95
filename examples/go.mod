module github.com/gorm-ryw/gorm-ryw/examples

go 1.25.0

require (
	github.com/gorm-ryw/gorm-ryw v0.0.0
	github.com/gorm-ryw/gorm-ryw/rywgrpc v0.0.0
	github.com/gorm-ryw/gorm-ryw/rywtest v0.0.0
	google.golang.org/grpc v1.76.0
	google.golang.org/protobuf v1.36.6
	gorm.io/driver/postgres v1.6.3
	gorm.io/gorm v1.31.2
	gorm.io/plugin/dbresolver v1.6.2
)

require (
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.13.0 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/jinzhu/inflection v1.0.0 // indirect
	github.com/jinzhu/now v1.1.5 // indirect
	golang.org/x/net v0.42.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.42.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20250804133106-a7a43d27e69b // indirect
)

replace (
	github.com/gorm-ryw/gorm-ryw => ../
	github.com/gorm-ryw/gorm-ryw/rywgrpc => ../rywgrpc
	github.com/gorm-ryw/gorm-ryw/rywtest => ../rywtest
)
