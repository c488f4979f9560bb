package loan_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/document"
	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
)

// codeOf returns the code of a refusal and fails the test on any other error.
func codeOf(t *testing.T, err error) lending.Code {
	t.Helper()
	if _, ok := errors.AsType[*lending.Error](err); err != nil && !ok {
		t.Fatalf("not a refusal: %v", err)
	}
	return lending.ErrorCode(err)
}

// refusal requests a draw that must be refused and returns the code.
func refusal(
	t *testing.T, w *apptest.Harness, uid uuid.UUID, input loan.DrawInput,
) lending.Code {
	t.Helper()
	err := w.Try(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := w.Loans.RequestDraw(ctx, tx, w.Caller(), uid, input)
		return err
	})
	if err == nil {
		t.Fatal("the draw was granted")
	}
	return codeOf(t, err)
}

func TestOfFiftySimultaneousDrawsOneIsGranted(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "40,40,20"))
	w.Subscribe(t, nil)
	for _, kind := range []string{
		"disbursement.funding.status-changed", "disbursement.funding.settled",
	} {
		w.Subscribe(t, func(s *subscription.Settings) { s.Events = []string{kind} })
	}
	before := w.Queued(t, delivery.Queue)

	const requests = 50
	errs := make([]error, requests)
	var together sync.WaitGroup
	for i := range requests {
		together.Go(func() {
			errs[i] = w.Try(t, func(ctx context.Context, tx *postgres.Tx) error {
				_, err := w.Loans.RequestDraw(ctx, tx, w.Caller(), app.UID, loan.DrawInput{})
				return err
			})
		})
	}
	together.Wait()

	codes := make(map[lending.Code]int)
	for _, err := range errs {
		codes[codeOf(t, err)]++
		if err != nil && !strings.HasPrefix(err.Error(), "Error in requestPublicDrawV2:") {
			t.Errorf("refusal %q", err)
		}
	}
	if codes[""] != 1 || codes[lending.CodeDrawPending] != requests-1 {
		t.Errorf("outcomes %v, want one granted and the others DRAW_PENDING", codes)
	}
	funding := lending.EventFundingChanged
	for what, got := range map[string]int{
		"disbursements": w.Count(t, `SELECT count(*) FROM disbursements`),
		"events":        w.Count(t, `SELECT count(*) FROM events WHERE kind = $1`, string(funding)),
		"deliveries": w.Count(t,
			`SELECT count(*) FROM deliveries WHERE event = $1`, string(funding)) / 2,
		"jobs": (w.Queued(t, delivery.Queue) - before) / 2,
	} {
		if got != 1 {
			t.Errorf("%s: %d (per subscription that wants the event), want 1", what, got)
		}
	}
}

func TestRefusedTransactionLeavesNothing(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Loan(t, w.NewProduct(t, "ONCE", "100"))
	w.Subscribe(t, nil)
	tables := []string{
		"disbursements", "certificates", "certificate_files", "events", "deliveries", "river_job",
	}
	before := make(map[string]int)
	for _, table := range tables {
		before[table] = w.Count(t, `SELECT count(*) FROM `+table)
	}

	crash := errors.New("the process stopped before the commit")
	err := w.Try(t, func(ctx context.Context, tx *postgres.Tx) error {
		input := apptest.Documented(apptest.File("roof.pdf", "done"))
		if _, err := w.Loans.RequestDraw(ctx, tx, w.Caller(), app.UID, input); err != nil {
			return err
		}
		return crash
	})
	if !errors.Is(err, crash) {
		t.Fatal(err)
	}
	for _, table := range tables {
		if got := w.Count(t, `SELECT count(*) FROM `+table); got != before[table] {
			t.Errorf("%s: %d rows, %d before", table, got, before[table])
		}
	}
	if left := w.GetLoan(t, app.UID).Balance().String(); left != "10000.00" {
		t.Errorf("balance %s after the rollback", left)
	}
}

// drawCase is a draw on a loan of 10,000.00 in stages of 40, 40 and 20 %, after the draws in
// before were settled.
type drawCase struct {
	name   string
	before []loan.DrawInput
	input  loan.DrawInput
	want   grant
}

// grant is the outcome of a draw, and the balance after it.
type grant struct {
	kind                             lending.DrawKind
	number, stage                    int
	gross, fee, net, amount, balance string
}

func reduced(amount string) loan.DrawInput {
	money := apptest.Money(amount)
	return loan.DrawInput{Request: lending.DrawRequest{UpdatedDisbursementAmount: &money}}
}

// completed returns input with documents and, unless amount is empty, a revised loan amount.
func completed(early bool, amount string) loan.DrawInput {
	input := apptest.Documented(apptest.File("roof.pdf", "done"))
	input.Request.ProjectCompletedEarly = early
	if amount != "" {
		money := apptest.Money(amount)
		input.Request.UpdatedLoanAmount = &money
	}
	return input
}

var drawCases = []drawCase{
	{
		name:  "regular",
		input: loan.DrawInput{},
		want:  grant{"regular", 1, 1, "4000.00", "150.00", "3850.00", "10000.00", "6000.00"},
	},
	{
		name:  "regular, reduced",
		input: reduced("1000.01"),
		want:  grant{"regular", 1, 1, "1000.01", "37.50", "962.51", "10000.00", "8999.99"},
	},
	{
		name:   "second regular",
		before: []loan.DrawInput{reduced("1000")},
		input:  loan.DrawInput{},
		want:   grant{"regular", 2, 2, "4000.00", "150.00", "3850.00", "10000.00", "5000.00"},
	},
	{
		name:   "final takes what a reduced draw left",
		before: []loan.DrawInput{reduced("1000"), {}},
		input:  completed(false, ""),
		want:   grant{"final", 3, 3, "5000.00", "187.50", "4812.50", "10000.00", "0.00"},
	},
	{
		name:   "final of a reduced loan",
		before: []loan.DrawInput{{}, {}},
		input:  completed(false, "9000"),
		want:   grant{"final", 3, 3, "1000.00", "37.50", "962.50", "9000.00", "0.00"},
	},
	{
		name:   "early",
		before: []loan.DrawInput{{}},
		input:  completed(true, ""),
		want:   grant{"early", 2, 2, "6000.00", "225.00", "5775.00", "10000.00", "0.00"},
	},
	{
		name:   "early of a reduced loan",
		before: []loan.DrawInput{{}},
		input:  completed(true, "4000.01"),
		want:   grant{"early", 2, 2, "0.01", "0.00", "0.01", "4000.01", "0.00"},
	},
}

func TestRequestDraw(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	product := w.NewProduct(t, "SOLAR", "40,40,20")
	for _, test := range drawCases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			app := w.Loan(t, product)
			for _, input := range test.before {
				w.Settle(t, w.Draw(t, app.UID, input).ID)
			}
			made := w.Draw(t, app.UID, test.input)
			after := w.GetLoan(t, app.UID)
			got := grant{
				made.Kind, made.Number, made.Stage, made.Gross.String(), made.Fee.String(),
				made.Net.String(), after.Amount().String(), after.Balance().String(),
			}
			if got != test.want {
				t.Errorf("drawn %+v, want %+v", got, test.want)
			}
			if made.ApplicationUID != app.UID || made.MerchantUID != w.Merchant {
				t.Errorf("drawn for application %s of merchant %s", made.ApplicationUID, made.MerchantUID)
			}
			if last := after.History[len(after.History)-1]; last.ID != made.ID ||
				last.Status != lending.FundingRequested || !last.RequestedAt.Equal(made.RequestedAt) {
				t.Errorf("the loan shows %+v, the answer was %+v", last, made)
			}
		})
	}
}

func TestRequestDrawRefusals(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	product := w.NewProduct(t, "SOLAR", "40,40,20")
	tests := []struct {
		name string
		make func(t *testing.T) uuid.UUID
		loan.DrawInput
		want lending.Code
	}{
		{
			name: "no such application",
			make: func(*testing.T) uuid.UUID { return uuid.New() },
			want: lending.CodeNotFound,
		},
		{
			name: "another merchant's",
			make: func(t *testing.T) uuid.UUID {
				t.Helper()
				other := w.NewMerchant(t, w.Partner, "Other")
				return w.Loan(t, product, apptest.Of(w.Partner, other)).UID
			},
			want: lending.CodeNotFound,
		},
		{
			name: "not Approved",
			make: func(t *testing.T) uuid.UUID {
				t.Helper()
				return w.Application(t, apptest.In(lending.StatusHardPull)).UID
			},
			want: lending.CodeApplicationNotApproved,
		},
		{
			name: "no longer Approved",
			make: func(t *testing.T) uuid.UUID {
				t.Helper()
				app := w.Loan(t, product)
				w.Move(t, app.UID, lending.StatusPendClearance)
				return app.UID
			},
			want: lending.CodeApplicationNotApproved,
		},
		{
			name: "no loan",
			make: func(t *testing.T) uuid.UUID {
				t.Helper()
				return w.Application(t, apptest.In(lending.StatusApproved)).UID
			},
			want: lending.CodeInvalidState,
		},
		{
			name: "files are documents, whatever the request says",
			make: func(t *testing.T) uuid.UUID { t.Helper(); return w.Loan(t, product).UID },
			DrawInput: loan.DrawInput{
				Files: []document.File{apptest.File("roof.pdf", "done")},
			},
			want: lending.CodeDocumentsNotAllowed,
		},
		{
			name: "no documents, whatever the request says",
			make: func(t *testing.T) uuid.UUID {
				t.Helper()
				return w.Loan(t, w.NewProduct(t, "ONCE", "100")).UID
			},
			DrawInput: loan.DrawInput{
				Request: lending.DrawRequest{Documents: lending.DocumentsGiven},
			},
			want: lending.CodeDocumentsRequired,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			uid := test.make(t)
			if got := refusal(t, w, uid, test.DrawInput); got != test.want {
				t.Errorf("code %s, want %s", got, test.want)
			}
			if count := w.Count(t, `SELECT count(*) FROM certificates WHERE application_uid = $1`,
				uid); count != 0 {
				t.Errorf("a refused draw left %d certificates", count)
			}
		})
	}
}

func TestDrawKeepsItsDocuments(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Loan(t, w.NewProduct(t, "ONCE", "100"))
	files := []document.File{
		apptest.File(`Dach "neu", {fertig}.pdf`, "one"),
		apptest.File(`снимок\крыши.pdf`, "two"),
	}
	input := apptest.Documented(files...)
	made := w.Draw(t, app.UID, input)

	var metadata string
	err := w.DB.GetContext(t.Context(), &metadata, `
		SELECT c.metadata::text
		  FROM certificates c
		  JOIN disbursements d USING (certificate_uid)
		 WHERE d.merchant_disbursement_id = $1
		   AND c.metadata = $2::jsonb`, made.ID, string(input.Metadata.JSON()))
	if err != nil {
		t.Errorf("the draw has no certificate with its metadata: %v", err)
	}
	var kept []struct {
		UID         uuid.UUID `db:"file_uid"`
		Name        string    `db:"name"`
		Size        int64     `db:"size"`
		ContentType string    `db:"content_type"`
		SHA256      string    `db:"sha256"`
		Key         string    `db:"object_key"`
	}
	err = w.DB.SelectContext(t.Context(), &kept, `
		SELECT file_uid, name, size, content_type, sha256, object_key
		  FROM certificate_files
		 ORDER BY position`)
	if err != nil {
		t.Fatal(err)
	}
	if len(kept) != len(files) {
		t.Fatalf("%d files kept, want %d", len(kept), len(files))
	}
	for i, file := range files {
		if document.File(kept[i]) != file {
			t.Errorf("file %d is %+v, want %+v", i+1, kept[i], file)
		}
		if found, err := w.Loans.IsReferenced(t.Context(), file.Key); err != nil || !found {
			t.Errorf("the object of file %d is not referenced (%v)", i+1, err)
		}
	}
	if found, err := w.Loans.IsReferenced(t.Context(), "documents/none"); err != nil || found {
		t.Errorf("an object that no file names is referenced (%v)", err)
	}
}

func TestDrawSendsNoMail(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "40,40,20"))
	before := w.Queued(t, email.Queue)
	w.Settle(t, w.Draw(t, app.UID, loan.DrawInput{}).ID)
	if after := w.Queued(t, email.Queue); after != before {
		t.Errorf("%d mails after a draw, %d before", after, before)
	}
}
