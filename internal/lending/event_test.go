package lending_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"drawbridge/internal/lending"
)

const applicationUID = "01938c5a-7b1e-7c3d-9f00-5a1b2c3d4e5f"

func exampleOffer(t testing.TB) lending.Offer {
	t.Helper()
	return lending.Offer{
		ProductUID: "b", ProductCode: "SOLAR-25", ProductName: "Solar 25", Term: "300",
		InterestRate: percent(t, "7.99"), BorrowerMax: money(t, "40000"),
		ProjectMax: money(t, "25000"), MaxAmount: money(t, "25000"),
		ApprovedAmount: money(t, "25000"), MerchantFeePercentage: percent(t, "3.75"),
	}
}

// exampleEvents returns an event of each kind, and of the variants of a kind that look
// different, by the name of the golden file.
func exampleEvents(t testing.TB) map[string]lending.Event {
	t.Helper()
	before, after, dearer := exampleOffer(t), exampleOffer(t), exampleOffer(t)
	after.ApprovedAmount = money(t, "18000.5")
	dearer.InterestRate, dearer.Term = percent(t, "8.25"), "240"
	requested := lending.FundingChanged(applicationUID, lending.FundingRequested)
	processing := lending.FundingChanged(applicationUID, lending.FundingProcessing)
	settled := lending.FundingChanged(applicationUID, lending.FundingSettled)
	cancelled := lending.FundingChanged(applicationUID, lending.FundingCancelled)
	returned := lending.FundingChanged(applicationUID, lending.FundingReturned)
	title := `Proof of <income> & "residence", für Zoë`
	updated := func(status lending.ApplicationStatus, offer *lending.Offer) lending.Event {
		return lending.StatusUpdated(applicationUID, status, offer)
	}
	document := func(status lending.DocumentStatus) lending.Event {
		return lending.DocumentChanged(applicationUID, status)
	}
	return map[string]lending.Event{
		"application.status.update":           updated("Approved", &before),
		"application.status.update.no-offer":  updated("Declined", nil),
		"application.amount.update":           lending.AmountUpdated(applicationUID, before, after),
		"application.offer.update":            lending.TermsUpdated(applicationUID, before, dearer),
		"document.sent":                       document("DOCUMENT_SENT"),
		"document.signed":                     document("DOCUMENT_SIGNED"),
		"disbursement.funding.status-changed": requested,
		"disbursement.funding.processing":     processing,
		"disbursement.funding.settled":        settled,
		"disbursement.funding.cancelled":      cancelled,
		"disbursement.funding.returned":       returned,
		"task.created":                        lending.TaskCreated(applicationUID, title, "Pending"),
		"task.updated":                        lending.TaskUpdated(applicationUID, title, "Completed"),
	}
}

// A golden file is the body byte for byte, because receivers sign and compare bytes.
func TestRenderMatchesTheGoldenFiles(t *testing.T) {
	t.Parallel()
	timestamp := time.Date(2026, 11, 21, 10, 30, 0, 120_000_999, time.FixedZone("", 3600))
	for name, event := range exampleEvents(t) {
		got, err := event.Render(timestamp)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("testdata", "events", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, bytes.TrimSuffix(want, []byte("\n"))) {
			t.Errorf("%s renders\n%s, want\n%s", name, got, want)
		}
	}
}

func TestEveryKindHasAnExample(t *testing.T) {
	t.Parallel()
	var seen []lending.EventKind
	for _, event := range exampleEvents(t) {
		seen = append(seen, event.Kind)
	}
	for _, kind := range lending.AllEventKinds() {
		if !slices.Contains(seen, kind) {
			t.Errorf("no golden file shows %s", kind)
		}
		if !kind.IsKnown() || kind.Title() == string(kind) {
			t.Errorf("%s has no title", kind)
		}
	}
	if len(lending.AllEventKinds()) != 11 || len(lending.SpecifiedEventKinds()) != 9 {
		t.Errorf("there are %d kinds, %d of the specification, want 11 and 9",
			len(lending.AllEventKinds()), len(lending.SpecifiedEventKinds()))
	}
	unknown := lending.EventKind("loan.opened")
	if unknown.IsKnown() || unknown.Title() != "loan.opened" {
		t.Error("a kind that does not exist is known")
	}
}

func TestFundingEventsByStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[lending.FundingStatus]string{
		"FUNDING_REQUESTED":  "disbursement.funding.status-changed FUNDING_REQUESTED",
		"FUNDING_PROCESSING": "disbursement.funding.status-changed FUNDING_PROCESSING",
		"FUNDING_SETTLED":    "disbursement.funding.settled FUNDING_SETTLED",
		"CANCELLED":          "disbursement.funding.cancelled FUNDING_CANCELLED",
		"RETURNED":           "disbursement.funding.returned FUNDING_RETURNED",
	} {
		event := lending.FundingChanged("a", status)
		if got := string(event.Kind) + " " + event.Status; got != want {
			t.Errorf("%s is told as %s, want %s", status, got, want)
		}
	}
}

func TestSamplesRenderForEveryKind(t *testing.T) {
	t.Parallel()
	for _, kind := range lending.AllEventKinds() {
		event, err := lending.SampleEvent(kind)
		if err != nil || event.Kind != kind {
			t.Fatalf("the sample of %s is a %s, %v", kind, event.Kind, err)
		}
		body, err := event.Render(time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		var payload struct {
			ApplicationID string `json:"application_id"`
			Timestamp     string `json:"timestamp"`
		}
		if err := json.Unmarshal(body, &payload); err != nil {
			t.Fatal(err)
		}
		if payload.ApplicationID != "00000000-0000-4000-8000-000000000000" ||
			payload.Timestamp != "1970-01-01T00:00:00.000000Z" {
			t.Errorf("the sample of %s is %s", kind, body)
		}
	}
	_, err := lending.SampleEvent("loan.opened")
	wantCode(t, err, lending.CodeValidation)
}
