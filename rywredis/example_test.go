package rywredis_test

import (
	"log"
	"net/http"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywhttp"
	"github.com/gorm-ryw/gorm-ryw/rywredis"
	"github.com/redis/go-redis/v9"
)

// One user's devices share what any of them has written.
func Example() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	store, err := rywredis.New(client, rywredis.Config{Age: 24 * time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	ryw, err := rywhttp.New(rywhttp.Config{
		Store:    store,
		StoreKey: func(r *http.Request) string { return userOf(r) },
	})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(":8080", ryw.Wrap(http.DefaultServeMux)))
}

// userOf is whom the request's own authentication has found.
func userOf(r *http.Request) string {
	user, _, _ := r.BasicAuth()
	return user
}
