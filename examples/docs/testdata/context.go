// Package context is what the fragments of Go in the documentation may use without
// saying where it comes from: the imports, types and variables here. Only what a
// fragment uses is compiled with it.
package context

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/carrier"
	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/rywgrpc"
	"github.com/gorm-ryw/gorm-ryw/rywhttp"
	"github.com/gorm-ryw/gorm-ryw/rywotel"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/rywprom"
	"github.com/gorm-ryw/gorm-ryw/rywredis"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"google.golang.org/grpc"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"
)

// The application's own types.

type Project struct {
	ID   int64
	Name string
}

type Order struct {
	ID     int64
	Status string
}

type ShipOrder struct {
	OrderID int64       `json:"order_id"`
	Token   token.Token `json:"consistency_token,omitzero"`
}

func (ShipOrder) Kind() string { return "ship_order" }

// Sessions, queries and what they return.

var ctx context.Context
var db, tx *gorm.DB
var ryw *rywplugin.Plugin
var cfg rywplugin.Config
var tok token.Token
var err error
var id int64
var p, project Project
var o, order Order
var list []Project
var orders []Order
var rows []Order
var fn func(tx *gorm.DB) error

// Where the servers are.

var dsn, primary, r1, r2 string
var replicas []gorm.Dialector

// HTTP, gRPC, jobs and messages.

var w http.ResponseWriter
var r *http.Request
var mux *http.ServeMux
var middleware *rywhttp.Middleware
var addr string
var authenticated func(http.Handler) http.Handler
var creds grpc.DialOption
var jobs *river.Client[*sql.Tx]
var job *river.Job[ShipOrder]
var payload []byte
var headers http.Header
var claims map[string]any
var key, old []byte

// Tests.

var t testing.TB
