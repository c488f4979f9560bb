package why

import (
	"fmt"
	"slices"

	"drawbridge/internal/lending"
)

// absent explains why there is no event: what it reports has not happened, or the event is no
// longer kept.
func (f Facts) absent() (Outcome, string) {
	var pending string
	switch f.Kind {
	case lending.EventStatusUpdated:
		pending = f.noStatus()
	case lending.EventAmountUpdated:
		pending = "The approved amount has not been changed"
	case lending.EventOfferUpdated:
		pending = "The terms have not been changed"
	case lending.EventDocumentSent:
		if f.Documents == lending.DocumentNone {
			pending = "The loan documents have not been sent"
		}
	case lending.EventDocumentSigned:
		switch f.Documents {
		case lending.DocumentNone:
			pending = "The loan documents have not been sent, so nobody could sign them"
		case lending.DocumentSent:
			pending = "The loan documents were sent and are not signed"
		case lending.DocumentSigned:
		}
	case lending.EventTaskCreated, lending.EventTaskUpdated:
		pending = f.noTask()
	case lending.EventFundingChanged, lending.EventFundingSettled, lending.EventFundingCancelled,
		lending.EventFundingReturned:
		pending = f.noFunding()
	}
	if pending == "" {
		return NotKept, f.what() + " happened, but no event that tells it is kept: it is older than " +
			"what retention keeps, or than events that name their draws"
	}
	if end, ended := f.ended(); ended {
		return NotHappened, pending + end + ", so it will not happen"
	}
	return NotHappened, pending + ". " + f.prospect()
}

// ended reports whether the event can no longer occur, and returns the reason to append if the
// pending text does not say it. Documents, tasks and the money of a draw may change even after
// the application has ended.
func (f Facts) ended() (end string, ended bool) {
	status, funding := lending.ApplicationStatus(f.Status), f.isFunding()
	switch {
	case funding && f.Funding != "":
		return "", !leadsTo(f.Funding, f.target())
	case f.Kind == lending.EventStatusUpdated && status == lending.StatusPendingReview:
		return "", true // no status leads back to it
	case funding, f.Kind == lending.EventStatusUpdated, f.Kind == lending.EventAmountUpdated,
		f.Kind == lending.EventOfferUpdated:
		return fmt.Sprintf(", and the application is %s", f.Application), f.Application.IsFinal()
	}
	return "", false
}

// target is the state of a draw that the missed event reports.
func (f Facts) target() lending.FundingStatus {
	switch f.Kind {
	case lending.EventFundingSettled:
		return lending.FundingSettled
	case lending.EventFundingCancelled:
		return lending.FundingCancelled
	case lending.EventFundingReturned:
		return lending.FundingReturned
	default:
		return lending.FundingStatus(f.Status)
	}
}

// leadsTo reports whether a draw may still move from one state to the other.
func leadsTo(from, to lending.FundingStatus) bool {
	return slices.ContainsFunc(from.Next(), func(next lending.FundingStatus) bool {
		return next == to || leadsTo(next, to)
	})
}

func (f Facts) noStatus() string {
	switch {
	case f.Status == "" && f.Application == lending.StatusPendingReview:
		return fmt.Sprintf("The status has not changed: the application is %s", f.Application)
	case f.Status == "":
		return "" // every application begins as Pending Review
	case f.Status == string(lending.StatusPendingReview):
		return "The application began as Pending Review, which is no change"
	case f.Status != string(f.Application) && f.Application.IsFinal():
		return "No event of the application tells " + f.Status
	case f.Status != string(f.Application):
		return fmt.Sprintf("The application is %s, and no event of it tells %s",
			f.Application, f.Status)
	}
	return ""
}

func (f Facts) noTask() string {
	switch {
	case f.Tasks == 0:
		return "The application has no task"
	case f.Kind == lending.EventTaskUpdated:
		return "No task of the application has changed its status"
	}
	return ""
}

// noFunding says what a draw's event is waiting for, "" if the event should exist.
func (f Facts) noFunding() string {
	if f.Funding == "" {
		return "No draw has been requested"
	}
	draw := fmt.Sprintf("Draw #%d", f.Draw)
	state := map[lending.FundingStatus]string{
		lending.FundingRequested:  "is only requested",
		lending.FundingProcessing: "is being paid out",
		lending.FundingSettled:    "is settled",
		lending.FundingCancelled:  "was cancelled",
		lending.FundingReturned:   "was returned",
	}[f.Funding]
	happened := map[lending.EventKind][]lending.FundingStatus{
		lending.EventFundingSettled:   {lending.FundingSettled, lending.FundingReturned},
		lending.EventFundingCancelled: {lending.FundingCancelled},
		lending.EventFundingReturned:  {lending.FundingReturned},
	}[f.Kind]
	switch {
	case slices.Contains(happened, f.Funding):
		return ""
	case f.Kind != lending.EventFundingChanged:
		return draw + " " + state
	case f.Status == string(lending.FundingProcessing) && f.Funding == lending.FundingRequested:
		return draw + " " + state
	case f.Status == string(lending.FundingProcessing) && f.Funding == lending.FundingCancelled:
		return draw + " was cancelled, and no event of it tells " + f.Status
	}
	return ""
}

// prospect says who will get the event once it happens.
func (f Facts) prospect() string {
	switch {
	case f.Subscriptions == 0:
		return "The partner has no subscription that could get it"
	case f.Wanting == 0:
		return "No subscription of the partner asks for it"
	case f.Wanting == f.Paused:
		return "The subscriptions that ask for it are paused"
	case f.Wanting == 1:
		return "1 subscription gets it once it happens"
	case f.Paused == 0:
		return fmt.Sprintf("%d subscriptions get it once it happens", f.Wanting)
	}
	return fmt.Sprintf("%d subscriptions get it once it happens, %d of them when resumed",
		f.Wanting, f.Paused)
}
