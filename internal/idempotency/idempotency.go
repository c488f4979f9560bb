// Package idempotency answers a repeated request with the reply to the first.
//
// A client identifies an operation by an Idempotency-Key. The first request with a key that
// succeeds stores its reply in the transaction of its effect, so that either both exist or neither.
// Later requests with the key get that reply for 24 hours, or a refusal if their content differs. A
// request that is refused or fails has changed nothing and leaves its key free:
//
//	key is free       run; on success store the reply
//	key is running    IDEMPOTENCY_CONFLICT
//	key is stored     same content: the stored reply
//	                  another one: IDEMPOTENCY_MISMATCH
//
// Stored fingerprints outlive an upgrade, in both directions: a release that encodes requests
// differently also computes, and stores, the encodings of the releases before it. The tests hold a
// golden fingerprint of each.
//
// Keys belong to a client and a merchant. A running request holds an advisory lock in its
// transaction: that goes however the transaction ends, a killed process included, and no row has to
// be cleaned up.
package idempotency

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// keptFor is how long a reply is replayed.
const keptFor = 24 * time.Hour

// Store runs keyed operations.
type Store struct {
	DB *postgres.DB
}

// Request identifies a request: its content, its client and its key.
type Request struct {
	ClientID    string
	MerchantUID uuid.UUID
	// Key is the result of ParseKey, empty for a request without one.
	Key string
	// Fingerprint identifies the content; it has at least one hash.
	Fingerprint Fingerprint
}

// Reply is the response to a request, ready to be written.
type Reply struct {
	Status int    `db:"status"`
	Body   []byte `db:"body"`
	// Replayed reports that the operation ran earlier, not for this request.
	Replayed bool
}

// Run runs the operation use in a transaction, unless the request's key has a stored reply, which
// it returns instead. The reply of use is stored with it. When use returns an error, its work is
// rolled back, nothing is stored, and Run returns that error.
//
// The database may ask for another try, so use may run more than once; only
// the work of its last run counts. Errors of its own: IDEMPOTENCY_CONFLICT,
// IDEMPOTENCY_MISMATCH.
func (s *Store) Run(
	ctx context.Context, request Request, use func(tx *postgres.Tx) (Reply, error),
) (Reply, error) {
	run := use
	if request.Key != "" {
		run = func(tx *postgres.Tx) (Reply, error) {
			return runKeyed(ctx, tx, request, use)
		}
	}
	var reply Reply
	err := s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		var err error
		reply, err = run(tx)
		return err
	})
	if err != nil {
		return Reply{}, err
	}
	return reply, nil
}

// IsUsed reports whether the request's key has a stored reply, or a running request may store one:
// then a request must get no other answer before its content is known. The fingerprint is ignored.
func (s *Store) IsUsed(ctx context.Context, request Request) (bool, error) {
	if request.Key == "" {
		return false, nil
	}
	// Taking the lock would cause a conflict for a request that begins meanwhile, so IsUsed only
	// checks it, and before the look-up: a former holder has then committed, and its reply is visible.
	var used bool
	err := s.DB.GetContext(ctx, &used, `SELECT `+postgres.LockHeld(`$1::bigint`), request.lock())
	if err == nil && !used {
		err = s.DB.GetContext(ctx, &used, `
			SELECT EXISTS (
			       SELECT FROM idempotency_keys
			        WHERE client_id = $1 AND merchant_uid = $2 AND key = $3 AND expires_at > $4
			          AND status < 300)`,
			request.ClientID, request.MerchantUID, request.Key, s.DB.Now().UTC())
	}
	if err != nil {
		return false, fmt.Errorf("asking for an idempotency key: %w", err)
	}
	return used, nil
}

// lock is the number of the advisory lock of the request's key. It is a hash: if two keys ever
// share one, one of the requests is answered with a conflict.
func (r Request) lock() int64 {
	sum := hashFields("idempotency", r.ClientID, r.MerchantUID.String(), r.Key)
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

func runKeyed(
	ctx context.Context, tx *postgres.Tx, request Request,
	use func(tx *postgres.Tx) (Reply, error),
) (Reply, error) {
	// The lock is taken in a statement before the look-up: a statement sees what was committed before
	// it began, so only then does the new holder of the lock see the reply of the previous one.
	var locked bool
	err := tx.GetContext(ctx, &locked, `SELECT pg_try_advisory_xact_lock($1)`, request.lock())
	if err != nil {
		return Reply{}, fmt.Errorf("locking an idempotency key: %w", err)
	}
	// Release 0.1.0 also stored refusals; they leave the key free.
	var stored storedReply
	err = tx.GetContext(ctx, &stored, `
		SELECT fingerprint, encodings, status, body
		  FROM idempotency_keys
		 WHERE client_id = $1 AND merchant_uid = $2 AND key = $3 AND expires_at > $4
		   AND status < 300`,
		request.ClientID, request.MerchantUID, request.Key, tx.Now)
	if err != nil && !postgres.IsNoRows(err) {
		return Reply{}, fmt.Errorf("looking up an idempotency key: %w", err)
	}
	switch found := err == nil; {
	case found && !request.Fingerprint.matches(stored.Fingerprint, stored.Encodings):
		return Reply{}, lending.NewError(lending.CodeIdempotencyMismatch,
			"this Idempotency-Key was used with a different method, path or body; use a new key")
	case found:
		stored.Replayed = true
		return stored.Reply, nil
	case !locked:
		return Reply{}, lending.NewError(lending.CodeIdempotencyConflict,
			"a request with this Idempotency-Key is still running; retry when it has ended")
	}
	reply, err := use(tx)
	if err != nil {
		return Reply{}, err
	}
	return reply, request.save(ctx, tx, reply)
}

// Purge deletes up to limit expired replies and returns how many it deleted. A result below limit
// means that none is left.
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	// Rows that a request is just storing again are skipped instead of awaited.
	count, err := postgres.Affected(s.DB.ExecContext(ctx, `
		DELETE FROM idempotency_keys
		 WHERE ctid = ANY (ARRAY(
		        SELECT ctid
		          FROM idempotency_keys
		         WHERE expires_at <= $1
		         ORDER BY expires_at
		         LIMIT $2
		           FOR UPDATE SKIP LOCKED))`, s.DB.Now().UTC(), limit))
	if err != nil {
		return 0, fmt.Errorf("purging idempotency keys: %w", err)
	}
	return count, nil
}
