package idempotency

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// entry is the place of one key in the database.
type entry struct {
	tx      *postgres.Tx
	request Request
}

// lock takes the key for the transaction; false means that another one has it.
func (e entry) lock(ctx context.Context) (bool, error) {
	var locked bool
	err := e.tx.GetContext(ctx, &locked, `SELECT pg_try_advisory_xact_lock($1)`, e.lockNumber())
	if err != nil {
		return false, fmt.Errorf("locking an idempotency key: %w", err)
	}
	return locked, nil
}

// lockNumber hashes the key to the number of an advisory lock. Should two keys
// ever share one, then one request is told to come again.
func (e entry) lockNumber() int64 {
	sum := hashFields("idempotency",
		e.request.ClientID, e.request.MerchantUID.String(), e.request.Key)
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// storedReply is a row of idempotency_keys.
type storedReply struct {
	Reply
	Fingerprint []byte        `db:"fingerprint"`
	Encodings   pq.ByteaArray `db:"encodings"`
}

func (s storedReply) replay(request Request) (Reply, error) {
	if !request.Fingerprint.matches(s.Fingerprint, s.Encodings) {
		return Reply{}, lending.NewError(lending.CodeIdempotencyMismatch,
			"this Idempotency-Key was used with another method, path or content; use a new one")
	}
	reply := s.Reply
	reply.Replayed = true
	return reply, nil
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
