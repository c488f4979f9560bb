package why_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/why"
)

// line is a verdict on an endpoint and its delivery, if there is one.
type line struct {
	verdict delivery.Verdict
	state   delivery.State
	tries   int
	status  int
	paused  bool
	good    bool
}

func eventOf(kind lending.EventKind, lines ...line) *delivery.EventDetail {
	event := &delivery.EventDetail{EventRecord: delivery.EventRecord{Kind: kind, Status: "Approved"}}
	for i, l := range lines {
		uid := uuid.New()
		verdict := delivery.LedgerLine{
			SubscriptionUID: uuid.New(), Verdict: l.verdict, State: subscription.StateActive,
			Endpoint: subscription.Endpoint{URL: []string{
				"https://a.example/in", "https://b.example/in", "https://c.example/in",
			}[i]},
		}
		if l.paused {
			verdict.State = subscription.StatePaused
		}
		if l.state != "" {
			verdict.DeliveryUID = &uid
			made := delivery.Delivery{UID: uid, State: l.state, AttemptCount: l.tries}
			if l.status != 0 {
				made.LastHTTPStatus = &l.status
			}
			if l.status >= 500 {
				class := "http_5xx"
				made.LastErrorClass = &class
			}
			if l.good {
				other := uuid.New()
				made.MadeGoodBy = &other
			}
			due := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
			made.NextAttemptAt = &due
			event.Deliveries = append(event.Deliveries, made)
		}
		event.Ledger = append(event.Ledger, verdict)
	}
	return event
}

func TestExplain(t *testing.T) {
	t.Parallel()
	const settled, funding = lending.EventFundingSettled, lending.EventFundingChanged
	arrived := line{
		verdict: delivery.VerdictSent, state: delivery.StateDelivered, tries: 1, status: 204,
	}
	failed := line{verdict: delivery.VerdictSent, state: delivery.StateFailed, tries: 3, status: 503}
	made := failed
	made.good = true
	retrying := line{
		verdict: delivery.VerdictSent, state: delivery.StateRetrying, tries: 1, status: 500,
	}
	fresh := line{verdict: delivery.VerdictSent, state: delivery.StatePending}
	parked := line{verdict: delivery.VerdictWaiting, state: delivery.StatePending, paused: true}
	cancelled := line{verdict: delivery.VerdictSent, state: delivery.StateCancelled}
	unchosen := line{verdict: delivery.VerdictEvent}
	replayed := line{
		verdict: delivery.VerdictEvent, state: delivery.StateDelivered, tries: 1, status: 200,
	}
	draw := why.Question{Kind: settled, Draw: 1005}
	asked := why.Facts{Question: draw, Subscriptions: 2, Wanting: 2}
	happened := func(lines ...line) why.Facts {
		return why.Facts{Question: draw, Event: eventOf(settled, lines...)}
	}
	in := func(kind lending.EventKind, change func(*why.Facts)) why.Facts {
		facts := why.Facts{Question: why.Question{Kind: kind}, Subscriptions: 1, Wanting: 1}
		change(&facts)
		return facts
	}
	state := func(status lending.FundingStatus) why.Facts {
		facts := asked
		facts.Funding = status
		return facts
	}
	tests := []struct {
		facts    why.Facts
		outcome  why.Outcome
		sentence string
	}{
		{
			happened(arrived),
			why.Sent, "of draw #1005 happened. It arrived: the endpoint answered HTTP 204",
		},
		{happened(failed), why.Failed, "did not arrive: all 3 attempts failed, the last with HTTP 503"},
		{happened(made), why.MadeGood, "it is made good"},
		{
			happened(retrying),
			why.Waiting, "waits for attempt 2 of 3, since the last one ended with HTTP 500",
		},
		{happened(fresh), why.Waiting, "waits for its first attempt"},
		{happened(parked), why.Paused, "subscription is paused"},
		{happened(cancelled), why.Cancelled, "was cancelled"},
		{happened(unchosen), why.NotChosen, "had not chosen events of this kind"},
		{happened(line{verdict: delivery.VerdictMerchant}), why.NotCovered, "did not cover the merchant"},
		{happened(line{verdict: delivery.VerdictDeleted}), why.Deleted, "had been deleted before"},
		{happened(line{verdict: delivery.VerdictLater}), why.TooLate, "was created after it"},
		{happened(line{verdict: delivery.VerdictUnrecorded}), why.NotRecorded, "No reason was kept"},
		{happened(line{verdict: "fan_out_due"}), why.Waiting, "is being prepared"},
		{happened(replayed), why.Sent, "replayed by hand, since the subscription had not chosen"},
		{happened(), why.Nobody, "the partner has no subscription"},
		{happened(arrived, arrived), why.Sent, "arrived at all 2 endpoints"},
		{happened(unchosen, arrived), why.Sent, "arrived at 1 of 2 endpoints"},
		{
			happened(arrived, failed, unchosen), why.Failed,
			"arrived at 1 of 2 endpoints. At b.example/in: it did not arrive",
		},
		{
			happened(unchosen, unchosen),
			why.NotChosen, "went to none of 2 endpoints. The subscription had not",
		},
		{
			happened(unchosen, line{verdict: delivery.VerdictMerchant}),
			why.NotChosen, "for different reasons",
		},

		{
			state(lending.FundingRequested), why.NotHappened,
			"Draw #1005 is only requested. 2 subscriptions get it once it happens",
		},
		{state(lending.FundingProcessing), why.NotHappened, "Draw #1005 is being paid out"},
		{
			state(lending.FundingCancelled), why.NotHappened,
			"Draw #1005 was cancelled, so it will not happen",
		},
		{in(lending.EventFundingCancelled, func(f *why.Facts) {
			f.Draw, f.Funding = 7, lending.FundingSettled
		}), why.NotHappened, "Draw #7 is settled, so it will not happen"},
		{in(funding, func(f *why.Facts) {
			f.Draw, f.Funding, f.Status = 7, lending.FundingCancelled, "FUNDING_PROCESSING"
		}), why.NotHappened, "no event of it tells FUNDING_PROCESSING, so it will not happen"},
		{
			in(settled, func(f *why.Facts) { f.Application = lending.StatusDeclined }), why.NotHappened,
			"No draw has been requested, and the application is Declined, so it will not happen",
		},
		{in(settled, func(f *why.Facts) { // the money of a draw can still move
			f.Draw, f.Funding, f.Application = 7, lending.FundingProcessing, lending.StatusClosed
		}), why.NotHappened, "Draw #7 is being paid out. 1 subscription gets it once it happens"},
		{
			in(lending.EventOfferUpdated, func(f *why.Facts) { f.Application = lending.StatusDeclined }),
			why.NotHappened,
			"not been changed, and the application is Declined, so it will not happen",
		},
		{in(lending.EventStatusUpdated, func(f *why.Facts) {
			f.Application, f.Status = lending.StatusClosed, "Approved"
		}), why.NotHappened, "tells Approved, and the application is Closed, so it will not happen"},
		{in(lending.EventStatusUpdated, func(f *why.Facts) {
			f.Application, f.Status = lending.StatusApproved, "Pending Review"
		}), why.NotHappened, "began as Pending Review, which is no change, so it will not happen"},
		{in(lending.EventStatusUpdated, func(f *why.Facts) {
			f.Application = lending.StatusApproved
		}), why.NotKept, "is kept"},
		{in(lending.EventDocumentSent, func(f *why.Facts) {
			f.Wanting, f.Paused = 3, 1
		}), why.NotHappened, "3 subscriptions get it once it happens, 1 of them when resumed"},
		{
			why.Facts{
				Question: why.Question{Kind: funding, Draw: 7}, Event: eventOf(funding, failed),
			}, why.Failed, "“Funding status changed” (Approved) of draw #7 happened",
		},
		{
			why.Facts{
				Question: why.Question{Kind: lending.EventTaskCreated}, Task: "Proof of income",
				Event: eventOf(lending.EventTaskCreated, failed),
			}, why.Failed, "“Task created” (Approved) of task “Proof of income” happened",
		},
		{state(lending.FundingSettled), why.NotKept, "no event that tells it is kept"},
		{asked, why.NotHappened, "No draw has been requested"},
		{in(lending.EventFundingReturned, func(f *why.Facts) {
			f.Draw, f.Funding = 7, lending.FundingSettled
		}), why.NotHappened, "Draw #7 is settled"},
		{in(funding, func(f *why.Facts) {
			f.Draw, f.Funding, f.Status = 7, lending.FundingRequested, "FUNDING_PROCESSING"
		}), why.NotHappened, "Draw #7 is only requested"},
		{
			in(lending.EventDocumentSigned, func(f *why.Facts) { f.Documents = lending.DocumentSent }),
			why.NotHappened, "sent and are not signed. 1 subscription gets it",
		},
		{
			in(lending.EventDocumentSigned, func(f *why.Facts) { f.Documents = lending.DocumentSigned }),
			why.NotKept, "is kept",
		},
		{
			in(lending.EventDocumentSent, func(f *why.Facts) { f.Wanting = 0 }),
			why.NotHappened, "have not been sent. No subscription of the partner asks for it",
		},
		{
			in(lending.EventTaskCreated, func(f *why.Facts) { f.Subscriptions, f.Wanting = 0, 0 }),
			why.NotHappened, "has no task. The partner has no subscription",
		},
		{
			in(lending.EventTaskUpdated, func(f *why.Facts) { f.Tasks, f.Paused = 1, 1 }),
			why.NotHappened, "No task of the application has changed its status. " +
				"The subscriptions that ask for it are paused",
		},
		{in(lending.EventStatusUpdated, func(f *why.Facts) {
			f.Application, f.Status = lending.StatusPendClearance, "Approved"
		}), why.NotHappened, "is Pend Clearance, and no event of it tells Approved"},
		{
			in(lending.EventAmountUpdated, func(*why.Facts) {}),
			why.NotHappened, "amount has not been changed",
		},
		{
			in(lending.EventOfferUpdated, func(*why.Facts) {}),
			why.NotHappened, "terms have not been changed",
		},
	}
	for _, test := range tests {
		answer := why.Explain(test.facts)
		if answer.Outcome != test.outcome || !strings.Contains(answer.Sentence, test.sentence) {
			t.Errorf("%s: %q, want %s: … %q", answer.Outcome, answer.Sentence, test.outcome, test.sentence)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text, subject string
		kind          lending.EventKind
		status        string
	}{
		{"Why did Ana Lima not get “Funding settled”?", "Ana Lima", lending.EventFundingSettled, ""},
		{"#1005 settled", "#1005", lending.EventFundingSettled, ""},
		{"draw 1005 disbursement.funding.settled", "1005", lending.EventFundingSettled, ""},
		{"SEED-12 FUNDING_PROCESSING", "SEED-12", lending.EventFundingChanged, "FUNDING_PROCESSING"},
		{
			"ana@example.com hard pull authorization", "ana@example.com",
			lending.EventStatusUpdated, "Hard Pull Authorization",
		},
		{"lima loan documents signed", "lima", lending.EventDocumentSigned, ""},
		{"Lima approved", "Lima", lending.EventStatusUpdated, "Approved"},
	}
	for _, test := range tests {
		subject, q, asked := why.Parse(test.text)
		if !asked || subject != test.subject || q.Kind != test.kind || q.Status != test.status {
			t.Errorf("%q: %q misses %s %q (%v)", test.text, subject, q.Kind, q.Status, asked)
		}
	}
	for _, none := range []string{
		"", "Ana Lima", "settled", "why did it", "0199a6b3-0000-7000-8000-000000000001",
	} {
		if subject, q, asked := why.Parse(none); asked {
			t.Errorf("%q asks about %q: %+v", none, subject, q)
		}
	}
}
