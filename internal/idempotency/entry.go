package idempotency

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

// entry is the place of one key in the database.
type entry struct {
	tx      *postgres.Tx
	request Request
}

// lock takes the key for the transaction; false means that another one has it. The
// number of the lock is a hash: should two keys ever share one, then one request is
// answered with a conflict.
func (e entry) lock(ctx context.Context) (bool, error) {
	sum := hashFields("idempotency",
		e.request.ClientID, e.request.MerchantUID.String(), e.request.Key)
	var locked bool
	err := e.tx.GetContext(ctx, &locked, `SELECT pg_try_advisory_xact_lock($1)`,
		int64(binary.BigEndian.Uint64(sum[:8])))
	if err != nil {
		return false, fmt.Errorf("locking an idempotency key: %w", err)
	}
	return locked, nil
}

// storedReply is a row of idempotency_keys.
type storedReply struct {
	Reply
	Fingerprint []byte        `db:"fingerprint"`
	Encodings   pq.ByteaArray `db:"encodings"`
}

// find looks for a stored reply that has not expired. Release 0.1.0 stored
// refusals too; they leave the key free.
func (e entry) find(ctx context.Context) (storedReply, bool, error) {
	var row storedReply
	err := e.tx.GetContext(ctx, &row, `
		SELECT fingerprint, encodings, status, body
		  FROM idempotency_keys
		 WHERE client_id = $1 AND merchant_uid = $2 AND key = $3 AND expires_at > $4
		   AND status < 300`,
		e.request.ClientID, e.request.MerchantUID, e.request.Key, e.tx.Now)
	if postgres.IsNoRows(err) {
		return storedReply{}, false, nil
	}
	if err != nil {
		return storedReply{}, false, fmt.Errorf("looking up an idempotency key: %w", err)
	}
	return row, true, nil
}

// save stores the reply.
func (e entry) save(ctx context.Context, reply Reply) error {
	body := reply.Body
	if body == nil {
		body = []byte{} // nil would be NULL
	}
	oldest, others := e.request.Fingerprint.stored()
	// The conflict is a reply that find leaves out and nobody has purged yet.
	_, err := e.tx.ExecContext(ctx, `
		INSERT INTO idempotency_keys (client_id, merchant_uid, key, fingerprint, encodings,
		                              status, body, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (client_id, merchant_uid, key) DO UPDATE
		   SET fingerprint = excluded.fingerprint, encodings = excluded.encodings,
		       status = excluded.status, body = excluded.body,
		       created_at = excluded.created_at, expires_at = excluded.expires_at`,
		e.request.ClientID, e.request.MerchantUID, e.request.Key, oldest, pq.ByteaArray(others),
		reply.Status, body, e.tx.Now, e.tx.Now.Add(keptFor))
	if err != nil {
		return fmt.Errorf("storing an idempotent reply: %w", err)
	}
	return nil
}
