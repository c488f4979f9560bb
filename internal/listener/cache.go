package listener

import (
	"context"
	"fmt"

	"golang.org/x/crypto/acme/autocert"

	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

// certificateCache keeps issued certificates and the account's key, encrypted, in the database: all
// processes share them, and a new process requests none.
type certificateCache struct {
	db   *postgres.DB
	keys *secret.Keyring
}

// Get returns the data kept under a name, or autocert.ErrCacheMiss.
func (c *certificateCache) Get(ctx context.Context, name string) ([]byte, error) {
	var sealed string
	err := c.db.GetContext(ctx, &sealed,
		`SELECT data_sealed FROM tls_certificates WHERE name = $1`, name)
	if postgres.IsNoRows(err) {
		return nil, autocert.ErrCacheMiss
	}
	if err != nil {
		return nil, fmt.Errorf("loading certificate %s: %w", name, err)
	}
	return c.keys.Open(sealed, "tls_certificates", "data_sealed", name)
}

// Put keeps data under a name.
func (c *certificateCache) Put(ctx context.Context, name string, data []byte) error {
	sealed := c.keys.Seal(data, "tls_certificates", "data_sealed", name)
	_, err := c.db.ExecContext(ctx, `
		INSERT INTO tls_certificates (name, data_sealed, updated_at)
		VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE
		   SET data_sealed = excluded.data_sealed,
		       updated_at = excluded.updated_at`, name, sealed, c.db.Now())
	if err != nil {
		return fmt.Errorf("keeping certificate %s: %w", name, err)
	}
	return nil
}

// Delete removes the data kept under a name.
func (c *certificateCache) Delete(ctx context.Context, name string) error {
	_, err := c.db.ExecContext(ctx, `DELETE FROM tls_certificates WHERE name = $1`, name)
	if err != nil {
		return fmt.Errorf("forgetting certificate %s: %w", name, err)
	}
	return nil
}
