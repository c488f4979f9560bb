package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
)

// order ranks the outcomes of endpoints: the one that decides the answer comes first. That one
// endpoint had not chosen the event explains nothing if it failed at another one, or arrived
// there.
var order = []Outcome{
	Failed, Paused, Waiting, Cancelled, Sent, MadeGood, NotChosen, NotCovered, TooLate, Deleted,
	NotRecorded,
}

// Explain answers from the facts alone.
func Explain(f Facts) Answer {
	if f.Event == nil {
		outcome, sentence := f.absent()
		return Answer{Outcome: outcome, Sentence: sentence, Others: f.OfKind}
	}
	answer := Answer{Outcome: Nobody, Event: f.Event, Others: max(f.OfKind-1, 0)}
	for _, verdict := range f.Event.Ledger {
		answer.Lines = append(answer.Lines, lineOf(verdict, f.Event.Deliveries))
	}
	slices.SortStableFunc(answer.Lines, func(a, b Line) int {
		return cmp.Compare(slices.Index(order, a.Outcome), slices.Index(order, b.Outcome))
	})
	answer.Sentence = f.what() + " happened, and the partner has no subscription"
	if len(answer.Lines) > 0 {
		answer.Outcome = answer.Lines[0].Outcome
		answer.Sentence = f.what() + " " + summary(answer.Lines)
	}
	return answer
}

// statusKinds are the kinds whose events are told apart by their status.
var statusKinds = []lending.EventKind{
	lending.EventStatusUpdated, lending.EventFundingChanged, lending.EventTaskCreated,
	lending.EventTaskUpdated,
}

// what names the event in question, so that it is not mistaken for another of its kind.
func (f Facts) what() string {
	name, status := "“"+f.Kind.Title()+"”", f.Status
	if f.Event != nil && slices.Contains(statusKinds, f.Kind) {
		status = f.Event.Status
	}
	if status != "" {
		name += " (" + status + ")"
	}
	if f.isFunding() && f.Draw != 0 {
		name += fmt.Sprintf(" of draw #%d", f.Draw)
	}
	if f.Task != "" {
		name += " of task “" + f.Task + "”"
	}
	return name
}

func (f Facts) isFunding() bool { return strings.HasPrefix(string(f.Kind), "disbursement.") }

// summary sums up the outcome of an event at all endpoints, which are sorted.
func summary(lines []Line) string {
	first := lines[0]
	if len(lines) == 1 {
		return "happened. " + first.Sentence
	}
	arrived, silent := 0, 0
	for _, line := range lines {
		switch line.Outcome {
		case Sent, MadeGood:
			arrived++
		case NotChosen, NotCovered, TooLate, Deleted, NotRecorded:
			silent++
		case Failed, Paused, Waiting, Cancelled, NotHappened, NotKept, Nobody:
		}
	}
	alike := !slices.ContainsFunc(lines, func(l Line) bool { return l.Outcome != first.Outcome })
	asked := len(lines) - silent
	switch {
	case asked == 0 && alike:
		return fmt.Sprintf("happened and went to none of %d endpoints. %s", len(lines), first.Sentence)
	case asked == 0:
		return fmt.Sprintf("happened and went to none of %d endpoints, for different reasons",
			len(lines))
	case arrived == asked:
		return "arrived at " + of(arrived, len(lines))
	}
	return fmt.Sprintf("arrived at %s. At %s: %s", of(arrived, asked),
		first.Label(), lowerFirst(first.Sentence))
}

func of(count, all int) string {
	switch {
	case count == all && all == 1:
		return "its endpoint"
	case count == all:
		return fmt.Sprintf("all %d endpoints", all)
	}
	return fmt.Sprintf("%d of %d endpoints", count, all)
}

func lowerFirst(text string) string { return strings.ToLower(text[:1]) + text[1:] }

// passedOver has the sentences for endpoints to which an event was not sent.
var passedOver = map[delivery.Verdict]struct {
	outcome  Outcome
	sentence string
}{
	delivery.VerdictEvent:      {NotChosen, "The subscription had not chosen events of this kind"},
	delivery.VerdictMerchant:   {NotCovered, "The subscription did not cover the merchant"},
	delivery.VerdictDeleted:    {Deleted, "The subscription had been deleted before"},
	delivery.VerdictLater:      {TooLate, "The subscription was created after it"},
	delivery.VerdictUnrecorded: {NotRecorded, "No reason was kept when it was recorded"},
}

// lineOf describes one endpoint's verdict and the outcome of its delivery.
func lineOf(verdict delivery.LedgerLine, deliveries []delivery.Delivery) Line {
	line := Line{SubscriptionUID: verdict.SubscriptionUID, Endpoint: verdict.Endpoint}
	at := slices.IndexFunc(deliveries, func(d delivery.Delivery) bool {
		return verdict.DeliveryUID != nil && d.UID == *verdict.DeliveryUID
	})
	passed, silent := passedOver[verdict.Verdict]
	switch {
	case !silent && at < 0:
		line.Outcome, line.Sentence = Waiting, "Its delivery is being prepared"
	case !silent:
		line.describe(deliveries[at], verdict.Verdict == delivery.VerdictWaiting)
	case at < 0:
		line.Outcome, line.Sentence = passed.outcome, passed.sentence
	default: // it has a delivery only because an operator replayed the event to it
		line.describe(deliveries[at], verdict.State == "paused" && !deliveries[at].State.IsFinal())
		line.Sentence += "; it was replayed by hand, since " + lowerFirst(passed.sentence)
	}
	return line
}

// describe describes the state of a delivery.
func (l *Line) describe(d delivery.Delivery, paused bool) {
	l.DeliveryUID, l.At = &d.UID, d.FinishedAt
	answered := Result(d.LastStatus(), d.LastError())
	switch {
	case d.MadeGoodBy != nil:
		l.Outcome, l.DeliveryUID = MadeGood, d.MadeGoodBy
		l.Sentence = "Its attempts were used up, and another delivery of it arrived: it is made good"
	case d.State == delivery.StateDelivered:
		l.Outcome = Sent
		l.Sentence = fmt.Sprintf("It arrived: the endpoint answered HTTP %d to attempt %d",
			d.LastStatus(), d.AttemptCount)
	case d.State == delivery.StateFailed:
		l.Outcome = Failed
		l.Sentence = fmt.Sprintf("It did not arrive: %s failed, the last with %s",
			attempts(d.AttemptCount), answered)
	case d.State == delivery.StateCancelled:
		l.Outcome = Cancelled
		l.Sentence = "Its delivery was cancelled, by an operator or with the subscription"
	case paused:
		l.Outcome, l.At = Paused, nil
		l.Sentence = "The subscription is paused: it waits until that is resumed"
	case d.AttemptCount == 0:
		l.Outcome, l.At = Waiting, d.NextAttemptAt
		l.Sentence = "It waits for its first attempt"
	default:
		l.Outcome, l.At = Waiting, d.NextAttemptAt
		l.Sentence = fmt.Sprintf("It waits for attempt %d of %d, since the last one ended with %s",
			d.AttemptCount+1, delivery.MaxAttempts, answered)
	}
}

func attempts(count int) string {
	if count == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("all %d attempts", count)
}

// results describe how an attempt without a status ended.
var results = map[sender.ErrorClass]string{
	sender.ClassDNS:      "a name that does not resolve",
	sender.ClassConnect:  "no connection",
	sender.ClassTLS:      "a failed TLS handshake",
	sender.ClassTimeout:  "no answer in time",
	sender.ClassBlocked:  "an address that must not be called",
	sender.ClassProtocol: "a broken answer",
	sender.ClassUnknown:  "an outcome that is not known",
}

// Result describes how an attempt ended.
func Result(status int, class sender.ErrorClass) string {
	return cmp.Or(results[class], fmt.Sprintf("HTTP %d", status))
}
