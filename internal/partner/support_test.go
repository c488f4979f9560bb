package partner_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

// harness is a separate database with a clock that moves only by hand.
type harness struct {
	*partner.Service
	clock *clock
}

type clock struct{ micros atomic.Int64 }

func (c *clock) now() time.Time           { return time.UnixMicro(c.micros.Load()).UTC() }
func (c *clock) advance(by time.Duration) { c.micros.Add(by.Microseconds()) }

func newHarness(t testing.TB) harness {
	t.Helper()
	h := harness{Service: &partner.Service{DB: pgtest.New(t)}, clock: &clock{}}
	h.clock.micros.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMicro())
	h.DB.Now = h.clock.now
	return h
}

// neighbour returns another process on the same database and clock.
func (h harness) neighbour(t testing.TB) harness {
	t.Helper()
	db, err := postgres.Open(context.Background(), h.DB.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.Now = h.clock.now
	return harness{Service: &partner.Service{DB: db}, clock: h.clock}
}

// inTx runs one use case and fails the test on an error.
func inTx[T any](t testing.TB, db *postgres.DB, use func(tx *postgres.Tx) (T, error)) T {
	t.Helper()
	result, err := tryTx(db, use)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func tryTx[T any](db *postgres.DB, use func(tx *postgres.Tx) (T, error)) (T, error) {
	var result T
	err := db.InTx(context.Background(), func(tx *postgres.Tx) error {
		var err error
		result, err = use(tx)
		return err
	})
	return result, err
}

func (h harness) partner(t testing.TB, name string) partner.Partner {
	t.Helper()
	return inTx(t, h.DB, func(tx *postgres.Tx) (partner.Partner, error) {
		return h.CreatePartner(context.Background(), tx, name, "")
	})
}

// merchants adds count merchants to a partner, a second apart.
func (h harness) merchants(t testing.TB, partnerUID uuid.UUID, count int) []uuid.UUID {
	t.Helper()
	var uids []uuid.UUID
	for range count {
		h.clock.advance(time.Second)
		merchant := inTx(t, h.DB, func(tx *postgres.Tx) (partner.Merchant, error) {
			return h.CreateMerchant(context.Background(), tx, partnerUID, "A merchant")
		})
		uids = append(uids, merchant.UID)
	}
	return uids
}

func (h harness) client(t testing.TB, request partner.NewClient) partner.Issued {
	t.Helper()
	return inTx(t, h.DB, func(tx *postgres.Tx) (partner.Issued, error) {
		return h.CreateClient(context.Background(), tx, request)
	})
}

// plain makes a partner with one merchant and a client for it.
func (h harness) plain(t testing.TB) partner.Issued {
	t.Helper()
	owner := h.partner(t, "Plain partner")
	h.merchants(t, owner.UID, 1)
	return h.client(t, partner.NewClient{PartnerUID: owner.UID})
}

func (h harness) revoke(t testing.TB, id string) {
	t.Helper()
	inTx(t, h.DB, func(tx *postgres.Tx) (any, error) {
		return nil, h.RevokeClient(context.Background(), tx, id)
	})
}

func (h harness) rotate(t testing.TB, id string, overlap time.Duration) partner.Rotated {
	t.Helper()
	return inTx(t, h.DB, func(tx *postgres.Tx) (partner.Rotated, error) {
		return h.RotateClient(context.Background(), tx, id, overlap)
	})
}

func (h harness) setRate(t testing.TB, id string, perSecond, burst int) {
	t.Helper()
	inTx(t, h.DB, func(tx *postgres.Tx) (any, error) {
		return nil, h.SetRate(context.Background(), tx, id, perSecond, burst)
	})
}

// login authenticates without naming a merchant.
func (h harness) login(credentials partner.Credentials) error {
	_, err := h.Authenticate(context.Background(), presented(credentials, ""))
	return err
}

// wantRefusal checks the code of a refusal and the field that it names, if any.
func wantRefusal(t testing.TB, err error, code lending.Code, field string) {
	t.Helper()
	refusal, ok := errors.AsType[*lending.Error](err)
	if !ok || refusal.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	if field != "" && (len(refusal.Details) == 0 || refusal.Details[0].Field != field) {
		t.Errorf("%q names %v, want %q", refusal.Message, refusal.Details, field)
	}
}

// countStatements makes the database count the INSERT or UPDATE statements on a table, including
// those that change nothing, and returns a function that reads the count.
func countStatements(t *testing.T, db *postgres.DB, event, table string) func() int {
	t.Helper()
	_, err := db.Exec(fmt.Sprintf(`
		CREATE SEQUENCE statement_count MINVALUE 0;
		SELECT nextval('statement_count');
		CREATE FUNCTION count_statement() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM nextval('statement_count');
			RETURN NULL;
		END $$;
		CREATE TRIGGER count_statement AFTER %s ON %s
			FOR EACH STATEMENT EXECUTE FUNCTION count_statement()`, event, table))
	if err != nil {
		t.Fatal(err)
	}
	return func() int {
		var count int
		if err := db.Get(&count, `SELECT last_value FROM statement_count`); err != nil {
			t.Fatal(err)
		}
		return count
	}
}

// presented returns what a request with credentials presents.
func presented(credentials partner.Credentials, merchant string) partner.Presented {
	return partner.Presented{
		ClientID: credentials.ClientID, Secret: credentials.Secret, Merchant: merchant,
	}
}
