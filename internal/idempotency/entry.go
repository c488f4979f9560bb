package idempotency

import (
	"context"
	"fmt"

	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

// storedReply is a row of idempotency_keys.
type storedReply struct {
	Reply
	Fingerprint []byte        `db:"fingerprint"`
	Encodings   pq.ByteaArray `db:"encodings"`
}

// save stores the reply.
func (r Request) save(ctx context.Context, tx *postgres.Tx, reply Reply) error {
	body := reply.Body
	if body == nil {
		body = []byte{} // nil would be NULL
	}
	oldest, others := r.Fingerprint.stored()
	// A conflict is with a reply that runKeyed ignores and that has not been purged yet.
	_, err := tx.ExecContext(ctx, `
		INSERT INTO idempotency_keys (client_id, merchant_uid, key, fingerprint, encodings,
		                              status, body, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (client_id, merchant_uid, key) DO UPDATE
		   SET fingerprint = excluded.fingerprint, encodings = excluded.encodings,
		       status = excluded.status, body = excluded.body,
		       created_at = excluded.created_at, expires_at = excluded.expires_at`,
		r.ClientID, r.MerchantUID, r.Key, oldest, pq.ByteaArray(others),
		reply.Status, body, tx.Now, tx.Now.Add(keptFor))
	if err != nil {
		return fmt.Errorf("storing an idempotent reply: %w", err)
	}
	return nil
}
