package idempotency_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/idempotency"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

// desk is a store with one client that acts for two merchants. The operation
// that it runs registers a visitor: one row, so that effects can be counted.
type desk struct {
	idempotency.Store
	micros    atomic.Int64
	merchants [2]uuid.UUID
}

const (
	clientID    = "dbc_00000000000070008000000000000001"
	otherClient = "dbc_00000000000070008000000000000002"
)

func newDesk(t testing.TB) *desk {
	t.Helper()
	d := &desk{Store: idempotency.Store{DB: pgtest.New(t)}}
	d.micros.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMicro())
	d.DB.Now = func() time.Time { return time.UnixMicro(d.micros.Load()) }
	owner := uuid.New()
	d.exec(t, `CREATE TABLE visitors (name text NOT NULL)`)
	d.exec(t, `INSERT INTO partners VALUES ($1, 'Partner', now())`, owner)
	for i := range d.merchants {
		d.merchants[i] = uuid.New()
		d.exec(t, `INSERT INTO merchants VALUES ($1, $2, 'Merchant', now())`, d.merchants[i], owner)
	}
	for _, id := range []string{clientID, otherClient} {
		d.exec(t, `
			INSERT INTO clients (client_id, partner_uid, is_group, secret_hash, created_at)
			VALUES ($1, $2, true, sha256('x'), now())`, id, owner)
	}
	return d
}

func (d *desk) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	pgtest.Exec(t, d.DB, query, args...)
}

func (d *desk) advance(by time.Duration) { d.micros.Add(by.Microseconds()) }

func (d *desk) count(t testing.TB, table string) int {
	t.Helper()
	return pgtest.Count(t, d.DB, `SELECT count(*) FROM `+table)
}

// request returns a keyed request; content distinguishes requests.
func (d *desk) request(key, content string) idempotency.Request {
	return idempotency.Request{
		ClientID: clientID, MerchantUID: d.merchants[0], Key: key,
		Fingerprint: idempotency.NewFingerprint("POST", "/v2/visitor", digest(content)),
	}
}

// register is the operation: it adds a row and answers with its name.
func register(name string) func(*postgres.Tx) (idempotency.Reply, error) {
	return func(tx *postgres.Tx) (idempotency.Reply, error) {
		if _, err := tx.Exec(`INSERT INTO visitors VALUES ($1)`, name); err != nil {
			return idempotency.Reply{}, err
		}
		return idempotency.Reply{Status: http.StatusCreated, Body: []byte("hello " + name)}, nil
	}
}

// refuse is the operation, which fails after its work.
func refuse(err error) func(*postgres.Tx) (idempotency.Reply, error) {
	return func(tx *postgres.Tx) (idempotency.Reply, error) {
		if _, err := register("nobody")(tx); err != nil {
			return idempotency.Reply{}, err
		}
		return idempotency.Reply{}, err
	}
}

// never is an operation that must not run.
func never(t *testing.T) func(*postgres.Tx) (idempotency.Reply, error) {
	return func(*postgres.Tx) (idempotency.Reply, error) {
		t.Error("the operation ran again")
		return idempotency.Reply{Status: http.StatusOK}, nil
	}
}

func (d *desk) run(
	request idempotency.Request, use func(*postgres.Tx) (idempotency.Reply, error),
) (idempotency.Reply, error) {
	return d.Run(context.Background(), request, use)
}

func (d *desk) mustRun(
	t testing.TB, request idempotency.Request,
	use func(*postgres.Tx) (idempotency.Reply, error),
) idempotency.Reply {
	t.Helper()
	reply, err := d.run(request, use)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func wantCode(t testing.TB, err error, code lending.Code) {
	t.Helper()
	if refusal, ok := errors.AsType[*lending.Error](err); !ok || refusal.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}
