package loan_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/document"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

func TestCertificates(t *testing.T) {
	t.Parallel()
	clock := apptest.NewClock()
	w := apptest.NewAt(t, clock)
	app := w.Loan(t, w.NewProduct(t, "SINGLE", "100"))
	metadata, err := lending.ParseMetadata([]byte(`{"stage":1}`))
	if err != nil {
		t.Fatal(err)
	}
	early := []document.File{apptest.File("a.pdf", "a"), apptest.File("b.png", "b")}
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := w.Loans.StoreCertificate(ctx, tx, w.Caller(), app.UID, loan.DrawInput{Files: early})
		return err
	})
	clock.Move(1e9)
	draw := w.Draw(t, app.UID, loan.DrawInput{Metadata: metadata})

	found, err := w.Loans.Certificates(t.Context(), app.UID)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 {
		t.Fatalf("%d certificates, want 2: %+v", len(found), found)
	}
	latest, first := found[0], found[1]
	if latest.DisbursementID != draw.ID || latest.DisbursementNumber != 1 ||
		len(latest.Files) != 0 || string(latest.Metadata) != `{"stage": 1}` {
		t.Errorf("the draw's certificate is %+v", latest)
	}
	if first.DisbursementID != 0 || first.Metadata != nil || len(first.Files) != 2 ||
		first.Files[0] != early[0] || first.Files[1] != early[1] {
		t.Errorf("the earlier certificate is %+v, want the files %+v", first, early)
	}
	both := apptest.Documented(apptest.File("c.pdf", "c"), apptest.File("d.pdf", "d"))
	second := w.Loan(t, w.NewProduct(t, "OTHER", "100"))
	w.Draw(t, second.UID, both)
	found, err = w.Loans.Certificates(t.Context(), second.UID)
	if err != nil || len(found) != 1 || len(found[0].Files) != 2 ||
		!strings.Contains(string(found[0].Metadata), `"panelCount": 12`) {
		t.Errorf("files with metadata are %+v, error %v", found, err)
	}
	if none, err := w.Loans.Certificates(t.Context(), uuid.New()); err != nil || none != nil {
		t.Errorf("nobody's certificates: %+v, error %v", none, err)
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	product := w.NewProduct(t, "SINGLE", "100")
	app, other := w.Loan(t, product), w.Loan(t, product)
	file := apptest.File("a.pdf", "a")
	w.Draw(t, app.UID, loan.DrawInput{Files: []document.File{file}})

	found, err := w.Loans.File(t.Context(), app.UID, file.UID)
	if err != nil || found != file {
		t.Errorf("found %+v, error %v, want %+v", found, err, file)
	}
	for name, ids := range map[string][2]uuid.UUID{
		"another loan": {other.UID, file.UID},
		"another file": {app.UID, uuid.New()},
	} {
		_, err := w.Loans.File(t.Context(), ids[0], ids[1])
		if got := codeOf(t, err); got != lending.CodeNotFound {
			t.Errorf("%s: code %q, want NOT_FOUND", name, got)
		}
	}
}
