package application_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/application"
	"drawbridge/internal/document"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

// counter opens connections that count the statements sent over them.
type counter struct {
	driver.Connector
	statements *atomic.Int64
}

func (c counter) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	return counted{conn, c.statements}, err
}

type counted struct {
	driver.Conn
	statements *atomic.Int64
}

func (c counted) ExecContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (driver.Result, error) {
	c.statements.Add(1)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c counted) QueryContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (driver.Rows, error) {
	c.statements.Add(1)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c counted) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
}

func (c counted) CheckNamedValue(value *driver.NamedValue) error {
	return c.Conn.(driver.NamedValueChecker).CheckNamedValue(value)
}

// The number of statements of the hot operations, with two subscriptions. It does not grow with
// stages, offers or files; anyone who raises it should know why.
func TestStatementsOfTheHotPaths(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Subscribe(t, nil)
	w.Subscribe(t, nil)
	tenths := w.NewProduct(t, "TENTHS", "10,10,10,10,10,10,10,10,10,10")
	once := w.NewProduct(t, "ONCE", "100")
	waiting := w.Application(t, apptest.In(lending.StatusApproved))
	rival := w.Application(t)

	draw := func(uid uuid.UUID, input loan.DrawInput) func(context.Context, *postgres.Tx) error {
		return func(ctx context.Context, tx *postgres.Tx) error {
			_, err := w.Loans.RequestDraw(ctx, tx, w.Caller(), uid, input)
			return err
		}
	}
	acceptance := application.Acceptance{
		ApplicationUID: waiting.UID, ProductUID: uuid.MustParse(tenths.UID),
	}
	acceptOffer := func(ctx context.Context, tx *postgres.Tx) error {
		_, err := w.Applications.AcceptOffer(ctx, tx, w.Caller(), acceptance)
		return err
	}
	files := make([]document.File, 10)
	for i := range files {
		files[i] = apptest.File("page.pdf", "page")
	}
	tests := []struct {
		name string
		use  func(context.Context, *postgres.Tx) error
		most int64
	}{
		// Lock, loan, disbursement, event time, event with deliveries, jobs, notification.
		{"regular draw", draw(w.Loan(t, tenths).UID, loan.DrawInput{}), 7},
		// And the certificate with its files.
		{"final draw", draw(w.Loan(t, once).UID, apptest.Documented(files...)), 8},
		// Lock, offers, selection, borrower, mail, job, notification, schedule, loan.
		{"accept-offer", acceptOffer, 9},
		// Lock and offers.
		{"accept-offer again", acceptOffer, 2},
		{"accept-offer with a linked one", func(ctx context.Context, tx *postgres.Tx) error {
			acceptance.Linked = []uuid.UUID{rival.UID}
			// Beyond that: status, event time, event with deliveries, jobs, notification.
			return acceptOffer(ctx, tx)
		}, 7},
	}
	connector, err := pq.NewConnector(w.DB.URL())
	if err != nil {
		t.Fatal(err)
	}
	var statements atomic.Int64
	db := &postgres.DB{
		DB:  sqlx.NewDb(sql.OpenDB(counter{connector, &statements}), "postgres"),
		Now: time.Now,
	}
	defer db.Close()
	for _, test := range tests {
		before := statements.Load()
		err := db.InTx(t.Context(), func(tx *postgres.Tx) error { return test.use(t.Context(), tx) })
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if sent := statements.Load() - before; sent > test.most {
			t.Errorf("%s: %d statements, at most %d are needed", test.name, sent, test.most)
		} else {
			t.Logf("%s: %d statements", test.name, sent)
		}
	}
}
