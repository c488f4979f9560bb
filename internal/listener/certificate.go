package listener

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"drawbridge/internal/config"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

// certificateCheck is how often the files of the certificate are checked for a newer one, which is
// used without a restart.
const certificateCheck = 10 * time.Second

// acmeTimeout bounds one request to the certificate authority.
const acmeTimeout = 30 * time.Second

// TLS returns how the process serves https, nil when it serves http and leaves encryption to a
// proxy in front of it.
func TLS(settings config.Config, db *postgres.DB, keys *secret.Keyring) (*tls.Config, error) {
	switch {
	case settings.TLSCert != "":
		files := &certificateFiles{cert: settings.TLSCert, key: settings.TLSKey, every: certificateCheck}
		if err := files.load(); err != nil {
			return nil, config.Errors{err.Error()}
		}
		return &tls.Config{
			MinVersion: tls.VersionTLS12, GetCertificate: files.get,
			NextProtos: []string{"h2", "http/1.1"},
		}, nil
	case len(settings.TLSAutocert) > 0:
		manager := &autocert.Manager{
			Prompt:     autocert.AcceptTOS,
			HostPolicy: autocert.HostWhitelist(settings.TLSAutocert...),
			Cache:      &certificateCache{db: db, keys: keys},
			Client: &acme.Client{
				DirectoryURL: settings.TLSAutocertDirectory,
				HTTPClient:   &http.Client{Timeout: acmeTimeout},
			},
		}
		issued := manager.TLSConfig()
		issued.MinVersion = tls.VersionTLS12
		return issued, nil
	}
	return nil, nil //nolint:nilnil // nothing to configure is no error
}

// certificateFiles serves a certificate from files that may be replaced.
type certificateFiles struct {
	cert, key string
	every     time.Duration

	mu       sync.Mutex
	current  *tls.Certificate
	modified [2]time.Time // of both, since a new certificate may be older than its key
	checked  time.Time
}

// get returns the certificate in the files, checked at most once in every. While a new pair cannot
// be read, the previous one stays in use.
func (f *certificateFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.checked) >= f.every {
		if err := f.load(); err != nil {
			slog.Error("reading the new certificate; the former one stays in use", "error", err)
		}
	}
	return f.current, nil
}

// load reads the files if they are new. Once get may be called concurrently, the caller must hold
// the lock.
func (f *certificateFiles) load() error {
	f.checked = time.Now()
	var modified [2]time.Time
	for i, path := range []string{f.cert, f.key} {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf(
				"DRAWBRIDGE_TLS_CERT must, with DRAWBRIDGE_TLS_KEY, name files that can be read: %w", err)
		}
		modified[i] = info.ModTime()
	}
	if f.current != nil && modified == f.modified {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return fmt.Errorf("DRAWBRIDGE_TLS_CERT and DRAWBRIDGE_TLS_KEY are no pair of PEM files: %w", err)
	}
	f.current, f.modified = &pair, modified
	return nil
}
