package application_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/catalog"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

const statusEvent = "application.status.update: "

func TestRunDecision(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.AddProduct(t, catalog.NewProduct{Code: "LARGE", Name: "Zenith", Min: "9000", Max: "50000"})
	w.AddProduct(t, catalog.NewProduct{Code: "basic", Name: "Apex", Min: "500", Max: "6000"})
	retired := w.AddProduct(t, catalog.NewProduct{Code: "RETIRED"})
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		return w.Catalog.SetActive(ctx, tx, uuid.MustParse(retired.UID), false)
	})
	tests := []struct {
		name    string
		options []apptest.Option
		want    lending.ApplicationStatus
		// offers are "product: borrower's, project's and lesser maximum, approved".
		offers []string
	}{
		{
			name: "no income stated",
			want: lending.StatusHardPullAuthorization,
			offers: []string{
				"LARGE: 50000.00 10000.00 10000.00 10000.00",
				"basic: 6000.00 6000.00 6000.00 6000.00",
			},
		},
		{
			name:    "income bounds the offer and its product's minimum",
			options: []apptest.Option{apptest.Earning("20000.04")},
			want:    lending.StatusHardPullAuthorization,
			offers:  []string{"basic: 8000.02 6000.00 6000.00 6000.00"},
		},
		{
			name:    "income too low for any product",
			options: []apptest.Option{apptest.Earning("1200")},
			want:    lending.StatusDeclined,
		},
		{
			name:    "switched to Declined",
			options: []apptest.Option{apptest.LastName("Declined")},
			want:    lending.StatusDeclined,
		},
		{
			name: "switched to Clearance",
			options: []apptest.Option{
				apptest.LastName("Clearance"), apptest.Requesting("700"),
			},
			want:   lending.StatusPendClearance,
			offers: []string{"basic: 6000.00 700.00 700.00 700.00"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			app := w.Application(t, test.options...)
			decided, err := decide(t, w, app.UID)
			if err != nil {
				t.Fatal(err)
			}
			loaded := w.Get(t, app.UID)
			if decided.Status != test.want || loaded.Status != test.want || !loaded.Decided {
				t.Errorf("status %s, stored %s (decided %t), want %s",
					decided.Status, loaded.Status, loaded.Decided, test.want)
			}
			same(t, "offers", offersOf(loaded.Offers), test.offers...)
			same(t, "offers answered", offersOf(decided.Offers), test.offers...)
			same(t, "events", w.Statuses(t, app.UID), statusEvent+string(test.want))
			mails := []string{"stipulation: suppressed"}
			if test.want == lending.StatusDeclined {
				mails = nil
			}
			same(t, "mails", w.MailsOf(t, app.UID), mails...)

			_, err = decide(t, w, app.UID)
			refused(t, err, lending.CodeInvalidState)
			same(t, "events", w.Statuses(t, app.UID), statusEvent+string(test.want))
		})
	}
}

func offersOf(offers []lending.Offer) []string {
	var lines []string
	for _, o := range offers {
		lines = append(lines, fmt.Sprintf("%s: %s %s %s %s",
			o.ProductCode, o.BorrowerMax, o.ProjectMax, o.MaxAmount, o.ApprovedAmount))
	}
	return lines
}

func TestUndecidedApplicationCanBeDecidedAgain(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.NewProduct(t, "SOLAR", "100")
	app := w.Application(t, apptest.LastName("Review"))
	for range 2 {
		decided, err := decide(t, w, app.UID)
		if err != nil || decided.Status != lending.StatusPendingReview || decided.Decided ||
			len(decided.Offers) != 0 {
			t.Fatalf("decided %+v (%v), want no decision", decided, err)
		}
	}
	same(t, "events", w.Statuses(t, app.UID))

	w.Applications.Switches = false
	decided, err := decide(t, w, app.UID)
	if err != nil || decided.Status != lending.StatusHardPullAuthorization {
		t.Errorf("without switches decided %s (%v)", decided.Status, err)
	}
}

// The lender may approve, and the borrower may accept, before the decision has run.
func TestDecisionAfterApprovalAndAcceptanceOpensTheLoan(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	product := w.NewProduct(t, "SOLAR", "40,40,20")
	w.NewProduct(t, "ROOF", "100")
	app := w.Application(t)
	w.Move(t, app.UID, lending.StatusApproved)
	if err := accept(t, w, app.UID, product); err != nil {
		t.Fatal(err)
	}
	decided, err := decide(t, w, app.UID)
	if err != nil {
		t.Fatal(err)
	}
	stored := w.Get(t, app.UID)
	if decided.Status != lending.StatusApproved || !stored.Decided || len(stored.Offers) != 2 ||
		len(decided.Offers) != 2 || !decided.UpdatedAt.Equal(stored.UpdatedAt) {
		t.Errorf("decided %+v, stored %+v", decided, stored)
	}
	opened := w.GetLoan(t, app.UID)
	if opened.ProductUID.String() != product.UID || opened.Amount().String() != "10000.00" {
		t.Errorf("the loan is %+v", opened)
	}
	same(t, "events", w.Statuses(t, app.UID), statusEvent+"Approved")
	_, err = decide(t, w, app.UID)
	refused(t, err, lending.CodeInvalidState)
}

// An application that was moved on is not left without an offer for ever: it is declined, or
// stays undecided if its status cannot become Declined.
func TestDecisionWithoutAnOfferAfterAMove(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	product := w.NewProduct(t, "SOLAR", "100")
	for name, without := range map[string]apptest.Option{
		"by name": apptest.LastName("Declined"), "by income": apptest.Earning("100"),
	} {
		for _, status := range lending.StatusPendingReview.Next() {
			if status.IsFinal() {
				continue
			}
			t.Run(name+" at "+string(status), func(t *testing.T) {
				t.Parallel()
				app := w.Application(t, without)
				w.Move(t, app.UID, status)
				decided, err := decide(t, w, app.UID)
				stored := w.Get(t, app.UID)
				if status == lending.StatusApproved {
					refused(t, err, lending.CodeInvalidState)
					if stored.Decided || stored.Status != status {
						t.Errorf("refused, and stored %+v", stored)
					}
					same(t, "events", w.Statuses(t, app.UID), statusEvent+string(status))
					if err := accept(t, w, app.UID, product); err != nil {
						t.Errorf("a product is not accepted any more: %v", err)
					}
					return
				}
				if err != nil || decided.Status != lending.StatusDeclined || !stored.Decided ||
					stored.Status != lending.StatusDeclined || len(stored.Offers) != 0 {
					t.Errorf("decided %+v (%v), stored %+v", decided, err, stored)
				}
				same(t, "events", w.Statuses(t, app.UID),
					statusEvent+string(status), statusEvent+"Declined")
			})
		}
	}
}

// An application that a person ended cannot be decided, and the error does not say that it was.
func TestDecisionOfAnEndedApplication(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	for _, status := range []lending.ApplicationStatus{"Declined", "Closed"} {
		app := w.Application(t)
		w.Move(t, app.UID, status)
		_, err := decide(t, w, app.UID)
		refused(t, err, lending.CodeInvalidState)
		if want := "cannot run on an application that is " + string(status); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want that it %s", err, want)
		}
	}
}

func TestDecisionOfAnUnknownApplication(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	other := w.NewMerchant(t, w.Partner, "Other")
	foreign := w.Application(t, apptest.Of(w.Partner, other))
	for name, uid := range map[string]uuid.UUID{"unknown": uuid.New(), "foreign": foreign.UID} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := decide(t, w, uid)
			refused(t, err, lending.CodeApplicationNotFound)
		})
	}
}

// The part of the offers that a status event shows.
func TestStatusEventBody(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	low := w.AddProduct(t, catalog.NewProduct{
		Code: "LOW", Max: "4000", Term: "60", Rate: "5.5", Fee: "1", Min: "2000",
	})
	w.AddProduct(t, catalog.NewProduct{Code: "HIGH", Min: "2000"})
	tests := []struct {
		name string
		make func(t *testing.T) uuid.UUID
		want string
	}{
		{
			name: "no offers",
			make: func(t *testing.T) uuid.UUID {
				t.Helper()
				return w.Application(t, apptest.Requesting("1000"),
					apptest.In(lending.StatusDeclined)).UID
			},
			want: `{"application_id":"%s","status":"Declined","timestamp":"%s",` +
				`"data":{"approved_offer":null}}`,
		},
		{
			name: "none selected: the highest",
			make: func(t *testing.T) uuid.UUID {
				t.Helper()
				return w.Application(t, apptest.In(lending.StatusHardPull)).UID
			},
			want: `{"application_id":"%s","status":"Hard Pull","timestamp":"%s",` +
				`"data":{"approved_offer":{"term":"120","interest_rate":"7.99",` +
				`"borrower_max_approved_amount":"100000.00","project_max_approved_amount":"10000.00",` +
				`"max_amount":"10000.00","approved_amount":"10000.00",` +
				`"merchant_fee_percentage":"3.75"}}}`,
		},
		{
			name: "the selected one",
			make: func(t *testing.T) uuid.UUID {
				t.Helper()
				app := w.Application(t, apptest.In(lending.StatusHardPull),
					apptest.Selecting(low))
				w.Move(t, app.UID, lending.StatusApproved)
				return app.UID
			},
			want: `{"application_id":"%s","status":"Approved","timestamp":"%s",` +
				`"data":{"approved_offer":{"term":"60","interest_rate":"5.5",` +
				`"borrower_max_approved_amount":"4000.00","project_max_approved_amount":"4000.00",` +
				`"max_amount":"4000.00","approved_amount":"4000.00","merchant_fee_percentage":"1"}}}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			uid := test.make(t)
			all := w.EventsOf(t, uid)
			last := all[len(all)-1]
			if want := fmt.Sprintf(test.want, uid, stamp(last)); last.Body != want {
				t.Errorf("body %s\nwant %s", last.Body, want)
			}
		})
	}
}
