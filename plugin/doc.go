// Package rywplugin is the GORM plugin that lets an application read from
// PostgreSQL replicas without its users missing their own writes.
//
//	db, err := gorm.Open(postgres.Open(primary), &gorm.Config{})
//	ryw := rywplugin.New(rywplugin.Config{
//		Replicas: []gorm.Dialector{postgres.Open(replica1), postgres.Open(replica2)},
//	})
//	if err := db.Use(ryw); err != nil { … }
//	defer ryw.Close()
//
// From here on reads go to the primary until they say otherwise, or until their
// context carries a session:
//
//	ctx = session.NewContext(ctx, session.New())
//	db.WithContext(ctx).Create(&order)         // remembered
//	db.WithContext(ctx).First(&o, order.ID)    // on a replica that has the order
//
// Package scopes has the hints for single queries, package session what travels
// between processes.
//
// # Beside dbresolver
//
// An application that has dbresolver already keeps it and gives it this plugin's
// policy, in either order:
//
//	ryw := rywplugin.New(rywplugin.Config{Default: rywplugin.StaleOK, TrustPools: true})
//	db.Use(dbresolver.Register(dbresolver.Config{Replicas: …, Policy: ryw.Policy()}))
//	db.Use(ryw)
//
// dbresolver opened those pools, so nothing proves that a connection in them is
// to the server, and to the life of it, that the watcher asks. Without TrustPools
// they serve no token reads; with it they do as long as the watcher's own
// connection holds.
//
// # When replicas fall behind
//
// Config.Fallback caps what then falls back to the primary, Config.Rotation takes slow
// replicas out, Config.Window keeps a session's reads on the primary for a while after
// a write. [Plugin.Tune] changes that, and most else, while the application runs.
//
// # What went where
//
// [Explain] says why a query went where it went, [ExplainInto] does for what returns no
// *gorm.DB, and [Logger] in GORM's own log. [Plugin.Status] has what is known of each
// server and what was counted; the modules rywprom and rywotel export it, and
// [Plugin.Handler] shows it to operators. Changes of servers go to Config.Logger.
package rywplugin
