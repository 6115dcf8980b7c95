package rywpgx_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

// certificate writes a certificate and its key where the server can read them.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	must(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	dir, err := os.MkdirTemp("", "rywpgx")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Chmod(dir, 0o755))
	info, err := os.Stat(cluster.Primary().SocketDir())
	must(t, err)
	owner := info.Sys().(*syscall.Stat_t)
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600))
		must(t, os.Chown(path, int(owner.Uid), int(owner.Gid)))
		return path
	}
	return write("server.crt", "CERTIFICATE", der), write("server.key", "PRIVATE KEY", encoded)
}

// The tap is inside the encryption, so that passwords can be bound to the channel.
func TestEncryptedConnections(t *testing.T) {
	cert, key := certificate(t)
	c, err := rywtest.Start(t.Context(), rywtest.Options{Replicas: rywtest.NoReplicas, Settings: map[string]string{
		"ssl": "on", "ssl_cert_file": cert, "ssl_key_file": key,
	}})
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	dsn := strings.Replace(c.Primary().DSN(), "sslmode=disable", "sslmode=verify-full&sslrootcert="+cert, 1)
	h := newHooks()
	h.all = &who{floor: true}
	db := settings{dsn: dsn}.ours(t, h)
	must(t, db.Exec("create table t (v int)").Error)
	for i := range 20 {
		must(t, db.Exec("insert into t values (?)", i).Error)
		var n int
		var encrypted bool
		must(t, db.Raw("select (select count(*) from t), ssl from pg_stat_ssl where pid = pg_backend_pid()").Row().Scan(&n, &encrypted))
		if n != i+1 || !encrypted {
			t.Fatalf("have %d rows, encrypted %v", n, encrypted)
		}
	}
	events := h.take()
	if len(events) < 41 {
		t.Errorf("have %d events, want 41", len(events))
	}
	for _, e := range events {
		if e.Outcome != rywpgx.Committed && e.Outcome != rywpgx.Read || !e.Placed() {
			t.Errorf("have %v", e)
		}
	}
}
