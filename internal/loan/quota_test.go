package loan_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/document"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

// TestStoredFilesAreBounded stores certificates until the loan, and then until the
// client's day, is full.
func TestStoredFilesAreBounded(t *testing.T) {
	t.Parallel()
	clock := apptest.NewClock()
	w := apptest.NewAt(t, clock)
	w.Loans.LoanQuota = loan.Quota{Files: 3, Bytes: 1 << 10}
	w.Loans.DayQuota = loan.Quota{Files: 5, Bytes: 1 << 20}
	product := w.NewProduct(t, "SINGLE", "100")
	first, second := w.Loan(t, product), w.Loan(t, product)
	store := func(uid uuid.UUID, files ...document.File) lending.Code {
		err := w.DB.InTx(t.Context(), func(tx *postgres.Tx) error {
			_, err := w.Loans.StoreCertificate(context.Background(), tx, w.Caller(), uid,
				apptest.Documented(files...))
			return err
		})
		return lending.ErrorCode(err)
	}
	file := func() document.File { return apptest.File("a.pdf", uuid.NewString()) }
	large := file()
	large.Size = 2 << 10
	for i, step := range []struct {
		uid   uuid.UUID
		files []document.File
		want  lending.Code
	}{
		{first.UID, []document.File{large}, lending.CodePayloadTooLarge},
		{first.UID, []document.File{file(), file()}, ""},
		{first.UID, []document.File{file(), file()}, lending.CodePayloadTooLarge},
		{first.UID, nil, ""}, // metadata alone
		{first.UID, nil, lending.CodePayloadTooLarge},
		{second.UID, []document.File{file(), file(), file()}, lending.CodeRateLimited},
		{second.UID, []document.File{file()}, ""},
		{second.UID, nil, ""},
		{second.UID, nil, lending.CodeRateLimited},
	} {
		if got := store(step.uid, step.files...); got != step.want {
			t.Errorf("step %d: code %q, want %q", i+1, got, step.want)
		}
	}
	clock.Move(24 * time.Hour)
	if got := store(second.UID, file()); got != "" {
		t.Errorf("on the next day: code %q", got)
	}
}
