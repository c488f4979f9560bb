package loan_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/document"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

func TestGet(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "33.33,33.33,33.34"))
	w.Settle(t, w.Draw(t, app.UID, loan.DrawInput{}).ID)
	w.Fund(t, w.Draw(t, app.UID, loan.DrawInput{}).ID, lending.FundingCancelled)
	w.Draw(t, app.UID, reduced("100"))

	found, err := w.Loans.Get(t.Context(), w.Caller(), app.UID)
	if err != nil {
		t.Fatal(err)
	}
	if found.ApplicationUID != app.UID || found.MerchantUID != w.Merchant ||
		found.Status != lending.StatusApproved || found.ProductCode != "SOLAR" ||
		found.ProductUID != *app.SelectedProductUID || found.OriginalAmount.String() != "10000.00" ||
		found.FeePercent.String() != "3.75" {
		t.Errorf("loan %+v", found)
	}
	var stages []string
	for _, stage := range found.Stages {
		stages = append(stages, stage.Percent.String()+" "+stage.Scheduled.String())
	}
	want := []string{"33.33 3333.00", "33.33 3333.00", "33.34 3334.00"}
	if !slices.Equal(stages, want) {
		t.Errorf("stages %q, want %q", stages, want)
	}
	var history []string
	for _, d := range found.History {
		history = append(history, string(d.Status)+" "+d.Gross.String())
	}
	want = []string{"FUNDING_SETTLED 3333.00", "CANCELLED 3333.00", "FUNDING_REQUESTED 100.00"}
	if !slices.Equal(history, want) {
		t.Errorf("history %q, want %q", history, want)
	}
	if got := found.Balance().String(); got != "6567.00" {
		t.Errorf("balance %s, want the amount less every live draw", got)
	}
}

func TestGetRefusals(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "100"))
	stranger := loan.Caller{MerchantUID: w.NewMerchant(t, w.Partner, "Other")}
	tests := []struct {
		name   string
		caller loan.Caller
		uid    uuid.UUID
	}{
		{"no application", w.Caller(), uuid.New()},
		{"no loan", w.Caller(), w.Application(t, apptest.In(lending.StatusApproved)).UID},
		{"another merchant's", stranger, app.UID},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := w.Loans.Get(t.Context(), test.caller, test.uid)
			if got := codeOf(t, err); got != lending.CodeNotFound {
				t.Errorf("code %q, want NOT_FOUND", got)
			}
		})
	}
}

// A preview returns what the draw then does, and changes nothing.
func TestPreviewForetellsTheDraw(t *testing.T) {
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
			before := w.GetLoan(t, app.UID)
			preview, err := w.Loans.PreviewDraw(t.Context(), w.Caller(), app.UID, test.input.Request)
			if err != nil || preview.Refusal != nil {
				t.Fatalf("preview refused: %v, %v", preview.Refusal, err)
			}
			if diff := cmp.Diff(before, w.GetLoan(t, app.UID)); diff != "" {
				t.Errorf("the preview changed the loan (-before +after):\n%s", diff)
			}
			made := w.Draw(t, app.UID, test.input)
			want := lending.Draw{
				Kind: made.Kind, Stage: made.Stage, Gross: made.Gross, Fee: made.Fee, Net: made.Net,
				NewLoanAmount:     test.input.Request.UpdatedLoanAmount,
				DocumentsRequired: made.Kind.Completes(),
			}
			if diff := cmp.Diff(want, preview.Draw); diff != "" {
				t.Errorf("the preview differs from the draw (-draw +preview):\n%s", diff)
			}
		})
	}
}

// A preview is read in one snapshot, even if a change commits between the two statements that
// read its loan.
func TestPreviewAmidAChange(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	uid := w.Loan(t, w.NewProduct(t, "SOLAR", "40,40,20")).UID
	draw := w.Draw(t, uid, loan.DrawInput{})
	w.Amid(t, "loans", func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := w.Loans.MoveFunding(ctx, tx, apptest.Operator(), draw.ID,
			lending.FundingChange{Status: lending.FundingCancelled})
		if err == nil {
			_, err = w.Applications.Move(ctx, tx, w.Caller(), uid, lending.StatusPendClearance)
		}
		return err
	}, func() {
		preview, err := w.Loans.PreviewDraw(t.Context(), w.Caller(), uid, lending.DrawRequest{})
		if err != nil || preview.Refusal == nil {
			t.Errorf("granted, which it was at no time: %+v, %v", preview, err)
		}
	})
}

func TestPreviewForetellsTheRefusal(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	product := w.NewProduct(t, "SOLAR", "40,40,20")
	pending := w.Loan(t, product)
	w.Draw(t, pending.UID, loan.DrawInput{})
	tests := []struct {
		name  string
		uid   uuid.UUID
		input loan.DrawInput
		want  lending.Code
	}{
		{"pending", pending.UID, loan.DrawInput{}, lending.CodeDrawPending},
		{"too much", w.Loan(t, product).UID, reduced("4000"), lending.CodeAmountExceedsBalance},
		{
			"early first", w.Loan(t, product).UID, completed(true, ""),
			lending.CodeEarlyCompletionForbidden,
		},
		{
			"no loan", w.Application(t, apptest.In(lending.StatusApproved)).UID,
			loan.DrawInput{},
			lending.CodeInvalidState,
		},
		{"not Approved", w.Application(t).UID, loan.DrawInput{}, lending.CodeApplicationNotApproved},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			preview, err := w.Loans.PreviewDraw(t.Context(), w.Caller(), test.uid, test.input.Request)
			if err != nil {
				t.Fatal(err)
			}
			if preview.Refusal == nil || preview.Refusal.Code != test.want {
				t.Errorf("foretold refusal %v, want %s", preview.Refusal, test.want)
			}
			if got := refusal(t, w, test.uid, test.input); got != test.want {
				t.Errorf("the draw was refused with %s, want %s", got, test.want)
			}
		})
	}
	_, err := w.Loans.PreviewDraw(t.Context(), w.Caller(), uuid.New(), lending.DrawRequest{})
	if got := codeOf(t, err); got != lending.CodeNotFound {
		t.Errorf("preview of no application: code %q, want NOT_FOUND", got)
	}
}

func TestStoreCertificate(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "40,40,20"))
	input := apptest.Documented(apptest.File("roof.pdf", "done"))
	tests := []struct {
		name  string
		uid   uuid.UUID
		input loan.DrawInput
		want  lending.Code
	}{
		{name: "files and metadata", uid: app.UID, input: input},
		{name: "metadata", uid: app.UID, input: apptest.Documented()},
		{name: "files", uid: app.UID, input: loan.DrawInput{
			Files: []document.File{apptest.File("a.pdf", "a"), apptest.File("b.pdf", "b")},
		}},
		{name: "empty", uid: app.UID, want: lending.CodeDocumentsRequired},
		{name: "unknown", uid: uuid.New(), input: input, want: lending.CodeNotFound},
		{
			name: "not Approved", uid: w.Application(t).UID, input: input,
			want: lending.CodeApplicationNotApproved,
		},
		{
			name: "no loan", uid: w.Application(t, apptest.In(lending.StatusApproved)).UID,
			input: input, want: lending.CodeInvalidState,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var kept loan.Certificate
			err := w.Try(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
				kept, err = w.Loans.StoreCertificate(ctx, tx, w.Caller(), test.uid, test.input)
				return err
			})
			if got := codeOf(t, err); got != test.want {
				t.Fatalf("code %q (%v), want %q", got, err, test.want)
			}
			if err != nil {
				return
			}
			stored := w.Count(t, `SELECT count(*) FROM certificate_files WHERE certificate_uid = $1`,
				kept.UID)
			if stored != len(test.input.Files) || len(kept.Files) != stored {
				t.Errorf("%d files stored, %d answered, want %d",
					stored, len(kept.Files), len(test.input.Files))
			}
			if got, want := kept.Metadata.JSON(), test.input.Metadata.JSON(); !slices.Equal(got, want) {
				t.Errorf("metadata %s, want %s", got, want)
			}
		})
	}
}
