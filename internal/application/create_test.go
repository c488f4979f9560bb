package application_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

func TestCreateKeepsAllThatWasGiven(t *testing.T) {
	t.Parallel()
	clock := apptest.NewClock()
	w := apptest.NewAt(t, clock)
	text := func(s string) *string { return &s }
	income := apptest.Money("52000.5")
	wanted := uuid.MustParse(w.NewProduct(t, "SOLAR", "100").UID)
	request := application.NewApplication{
		Source:            lending.SourcePartner,
		PartnerUID:        w.Partner,
		MerchantUID:       w.Merchant,
		RequestedAmount:   apptest.Money("12345.67"),
		ProductUID:        &wanted,
		ExternalReference: text("ORDER-7"),
		Borrower: application.Borrower{
			FirstName: "Zoë", LastName: `O'Brien, "Jr"`, Email: "zoe@bücher.example",
			Phone: text("+1 555 0100"), AnnualIncome: &income,
		},
		Project: application.Project{
			Name: "屋根", Description: text("South side"), Address: text("1 Main St"),
		},
	}
	var made application.Application
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, err = w.Applications.Create(ctx, tx, request)
		return err
	})
	want := application.Application{
		UID:               made.UID,
		MerchantUID:       w.Merchant,
		Source:            lending.SourcePartner,
		Status:            lending.StatusPendingReview,
		Communications:    lending.CommunicationsPaused,
		ExternalReference: request.ExternalReference,
		RequestedAmount:   request.RequestedAmount,
		Borrower:          request.Borrower,
		Project:           request.Project,
		CreatedAt:         clock.Now(),
		UpdatedAt:         clock.Now(),
	}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("made (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(made, w.Get(t, made.UID)); diff != "" {
		t.Errorf("loaded (-made +loaded):\n%s", diff)
	}
	if w.Count(t, `SELECT count(*) FROM applications WHERE requested_product_uid = $1`, wanted) != 1 {
		t.Error("the product that was asked for is not kept")
	}
}

func TestCreateBySource(t *testing.T) {
	t.Parallel()
	tests := []struct {
		source lending.Source
		want   lending.Communications
		mails  []string
	}{
		{lending.SourcePartner, lending.CommunicationsPaused, nil},
		{lending.SourceConsole, lending.CommunicationsEnabled, []string{"welcome: queued"}},
	}
	w := apptest.New(t)
	w.Subscribe(t, nil)
	for _, test := range tests {
		t.Run(string(test.source), func(t *testing.T) {
			t.Parallel()
			app := w.Application(t, apptest.From(test.source))
			if app.Communications != test.want {
				t.Errorf("communications %s, want %s", app.Communications, test.want)
			}
			same(t, "mails", w.MailsOf(t, app.UID), test.mails...)
			same(t, "events", w.Statuses(t, app.UID))
		})
	}
}

func TestCreateRefusals(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	retired := uuid.MustParse(w.NewProduct(t, "OLD", "100").UID)
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		return w.Catalog.SetActive(ctx, tx, retired, false)
	})
	unknown := uuid.New()
	tests := []struct {
		name, address string
		product       *uuid.UUID
		want          lending.Code
		field         string
	}{
		{name: "no address", want: lending.CodeValidation, field: "borrower.email"},
		{
			name: "no domain", address: "ana@", want: lending.CodeValidation, field: "borrower.email",
		},
		{
			name: "unknown product", address: "a@b.example", product: &unknown,
			want: lending.CodeProductNotFound,
		},
		{
			name: "retired product", address: "a@b.example", product: &retired,
			want: lending.CodeProductNotFound,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := w.Try(t, func(ctx context.Context, tx *postgres.Tx) error {
				_, err := w.Applications.Create(ctx, tx, application.NewApplication{
					Source: lending.SourcePartner, PartnerUID: w.Partner, MerchantUID: w.Merchant,
					RequestedAmount: apptest.Money("1000"), ProductUID: test.product,
					Borrower: application.Borrower{Email: test.address},
				})
				return err
			})
			refused(t, err, test.want)
			if test.field != "" {
				refusal, _ := errors.AsType[*lending.Error](err)
				problem := refusal.Details[0]
				if problem.Field != test.field || problem.Message[:16] != `"borrower.email"` {
					t.Errorf("fault %+v, want one of %s", problem, test.field)
				}
			}
		})
	}
}

func TestGetHidesOtherMerchantsApplications(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Application(t)
	stranger := loan.Caller{MerchantUID: w.NewMerchant(t, w.Partner, "Other")}
	if _, err := w.Applications.Get(t.Context(), w.Caller(), app.UID); err != nil {
		t.Error(err)
	}
	_, err := w.Applications.Get(t.Context(), stranger, app.UID)
	refused(t, err, lending.CodeNotFound)
	_, err = w.Applications.Get(t.Context(), w.Caller(), uuid.New())
	refused(t, err, lending.CodeNotFound)
}
