package lending

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// EventKind names a webhook event. The payload does not carry it.
type EventKind string

// The kinds of events (specification section 6.2).
const (
	EventStatusUpdated  EventKind = "application.status.update"
	EventAmountUpdated  EventKind = "application.amount.update"
	EventOfferUpdated   EventKind = "application.offer.update"
	EventDocumentSent   EventKind = "document.sent"
	EventDocumentSigned EventKind = "document.signed"
	EventFundingChanged EventKind = "disbursement.funding.status-changed"
	EventFundingSettled EventKind = "disbursement.funding.settled"
	EventTaskCreated    EventKind = "task.created"
	EventTaskUpdated    EventKind = "task.updated"
)

// The kinds that the specification does not have: a subscription gets them only
// if it names them.
const (
	EventFundingCancelled EventKind = "disbursement.funding.cancelled"
	EventFundingReturned  EventKind = "disbursement.funding.returned"
)

// AllEvents chooses every kind of the specification.
const AllEvents = "all"

// The fixed statuses of the two events about a changed offer.
const (
	statusAmountUpdated = "Loan Amount Updated"
	statusTermsUpdated  = "Terms Updated"
)

// The statuses of the two events for cancelled and returned funding. They differ from the
// disbursement's own statuses, so that the status of every funding event begins alike.
const (
	statusFundingCancelled = "FUNDING_CANCELLED"
	statusFundingReturned  = "FUNDING_RETURNED"
)

// SampleApplicationUID is the application that test events name.
const SampleApplicationUID = "00000000-0000-4000-8000-000000000000"

// timestampLayout is UTC with all six digits of the microseconds.
const timestampLayout = "2006-01-02T15:04:05.000000Z"

// eventTitles lists every kind once, in the order of the documentation.
var eventTitles = []struct {
	kind  EventKind
	title string
}{
	{EventStatusUpdated, "Application status changed"},
	{EventAmountUpdated, "Approved amount changed"},
	{EventOfferUpdated, "Terms changed"},
	{EventDocumentSent, "Loan documents sent"},
	{EventDocumentSigned, "Loan documents signed"},
	{EventFundingChanged, "Funding status changed"},
	{EventFundingSettled, "Funding settled"},
	{EventFundingCancelled, "Draw cancelled"},
	{EventFundingReturned, "Funding returned"},
	{EventTaskCreated, "Task created"},
	{EventTaskUpdated, "Task status changed"},
}

// AllEventKinds lists every kind once, in the order of the documentation.
func AllEventKinds() []EventKind {
	kinds := make([]EventKind, len(eventTitles))
	for i, entry := range eventTitles {
		kinds[i] = entry.kind
	}
	return kinds
}

// SpecifiedEventKinds lists the kinds that AllEvents chooses.
func SpecifiedEventKinds() []EventKind {
	return slices.DeleteFunc(AllEventKinds(), EventKind.IsOptIn)
}

// IsOptIn reports whether a subscription gets the kind only by naming it.
func (k EventKind) IsOptIn() bool { return k == EventFundingCancelled || k == EventFundingReturned }

// Choices lists the values of a subscription's events that include the kind.
func (k EventKind) Choices() []string {
	if k.IsOptIn() {
		return []string{string(k)}
	}
	return []string{AllEvents, string(k)}
}

// IsKnown reports whether the kind exists.
func (k EventKind) IsKnown() bool { return slices.Contains(AllEventKinds(), k) }

// Title returns a short name for people, the kind itself if it does not exist.
func (k EventKind) Title() string {
	for _, entry := range eventTitles {
		if entry.kind == k {
			return entry.title
		}
	}
	return string(k)
}

// Named returns the short name followed by the kind, or the kind alone if it does not exist.
func (k EventKind) Named() string {
	if !k.IsKnown() {
		return string(k)
	}
	return k.Title() + " (" + string(k) + ")"
}

// Event is something that happened to an application, before it is given its time. Build one
// with the functions below, which set the fields of each kind.
type Event struct {
	Kind           EventKind
	ApplicationUID string
	Status         string
	// Subject names the object whose state the event reports if that is not the application:
	// disbursement/ID or task/UID.
	Subject string
	// TaskTitle is nil except on task events.
	TaskTitle *string
	// data is nil except on application events.
	data any
}

// OfferPayload is the approved offer object of the webhooks (specification
// section 2.6). All its values are strings.
type OfferPayload struct {
	Term                      string `json:"term"`
	InterestRate              string `json:"interest_rate"`
	BorrowerMaxApprovedAmount string `json:"borrower_max_approved_amount"`
	ProjectMaxApprovedAmount  string `json:"project_max_approved_amount"`
	// MaxAmount is absent from application.offer.update.
	MaxAmount             string `json:"max_amount,omitempty"`
	ApprovedAmount        string `json:"approved_amount"`
	MerchantFeePercentage string `json:"merchant_fee_percentage"`
}

type statusData struct {
	ApprovedOffer *OfferPayload `json:"approved_offer"`
}

type offerChangeData struct {
	Previous OfferPayload `json:"previous_approved_offer"`
	Updated  OfferPayload `json:"updated_approved_offer"`
}

// StatusUpdated reports that the application entered the status. The offer is that of
// ReportedOffer, nil without offers.
func StatusUpdated(applicationUID string, status ApplicationStatus, offer *Offer) Event {
	var data statusData
	if offer != nil {
		data.ApprovedOffer = new(offer.payload(true))
	}
	return Event{
		Kind: EventStatusUpdated, ApplicationUID: applicationUID, Status: string(status), data: data,
	}
}

// AmountUpdated reports that the approved amount changed.
func AmountUpdated(applicationUID string, previous, updated Offer) Event {
	return Event{
		Kind: EventAmountUpdated, ApplicationUID: applicationUID, Status: statusAmountUpdated,
		data: offerChangeData{Previous: previous.payload(true), Updated: updated.payload(true)},
	}
}

// TermsUpdated reports that rate, term or fee changed.
func TermsUpdated(applicationUID string, previous, updated Offer) Event {
	return Event{
		Kind: EventOfferUpdated, ApplicationUID: applicationUID, Status: statusTermsUpdated,
		data: offerChangeData{Previous: previous.payload(false), Updated: updated.payload(false)},
	}
}

// DocumentChanged reports that the loan documents were sent or signed.
func DocumentChanged(applicationUID string, status DocumentStatus) Event {
	kind := EventDocumentSent
	if status == DocumentSigned {
		kind = EventDocumentSigned
	}
	return Event{Kind: kind, ApplicationUID: applicationUID, Status: string(status)}
}

// FundingChanged reports that the money of a disbursement moved.
func FundingChanged(applicationUID string, status FundingStatus) Event {
	event := Event{Kind: EventFundingChanged, ApplicationUID: applicationUID, Status: string(status)}
	switch status {
	case FundingSettled:
		event.Kind = EventFundingSettled
	case FundingCancelled:
		event.Kind, event.Status = EventFundingCancelled, statusFundingCancelled
	case FundingReturned:
		event.Kind, event.Status = EventFundingReturned, statusFundingReturned
	case FundingRequested, FundingProcessing:
	}
	return event
}

// TaskCreated reports that a task was added to the application.
func TaskCreated(applicationUID, title string, status TaskStatus) Event {
	return Event{
		Kind: EventTaskCreated, ApplicationUID: applicationUID, Status: string(status),
		TaskTitle: &title,
	}
}

// TaskUpdated reports that the status of a task changed.
func TaskUpdated(applicationUID, title string, status TaskStatus) Event {
	event := TaskCreated(applicationUID, title, status)
	event.Kind = EventTaskUpdated
	return event
}

// SubjectName names the object whose state the event reports, such as application/UID.
func (e Event) SubjectName() string {
	if e.Subject != "" {
		return e.Subject
	}
	return "application/" + e.ApplicationUID
}

// Render returns the body of the webhook: the fields of the specification's
// section 2.7 in its order, nothing else. The timestamp is written in UTC to the
// microsecond. Equal input gives equal bytes.
func (e Event) Render(timestamp time.Time) ([]byte, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	// Titles are sent as they were written; the body is JSON and never part of a page.
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(struct {
		ApplicationID string  `json:"application_id"`
		Status        string  `json:"status"`
		Timestamp     string  `json:"timestamp"`
		Data          any     `json:"data,omitempty"`
		TaskTitle     *string `json:"task_title,omitempty"`
	}{e.ApplicationUID, e.Status, FormatTimestamp(timestamp), e.data, e.TaskTitle})
	if err != nil {
		return nil, fmt.Errorf("rendering event %s: %w", e.Kind, err)
	}
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), nil
}

// RenderAround returns the body as Render does, split into the parts before and after the
// timestamp, for a caller that learns the time only when the event is written.
func (e Event) RenderAround() (head, tail []byte, err error) {
	body, err := e.Render(time.Time{})
	if err != nil {
		return nil, nil, err
	}
	// The text of a payload cannot contain this name, since its quotes are escaped.
	const name = `"timestamp":"`
	head, tail, found := bytes.Cut(body, []byte(name+FormatTimestamp(time.Time{})))
	if !found {
		return nil, nil, fmt.Errorf("rendering event %s: the body has no timestamp", e.Kind)
	}
	return append(slices.Clip(head), name...), tail, nil
}

// FormatTimestamp writes the time of an event as its payload does.
func FormatTimestamp(timestamp time.Time) string { return timestamp.UTC().Format(timestampLayout) }

// SampleEvent returns an event of the kind with made-up content, for tests of a
// subscription. Error: VALIDATION_ERROR for a kind that does not exist.
func SampleEvent(kind EventKind) (Event, error) {
	before := sampleOffer("12000.00", "7.99")
	switch kind {
	case EventStatusUpdated:
		return StatusUpdated(SampleApplicationUID, StatusApproved, &before), nil
	case EventAmountUpdated:
		return AmountUpdated(SampleApplicationUID, before, sampleOffer("10000.00", "7.99")), nil
	case EventOfferUpdated:
		return TermsUpdated(SampleApplicationUID, before, sampleOffer("12000.00", "6.49")), nil
	case EventDocumentSent:
		return DocumentChanged(SampleApplicationUID, DocumentSent), nil
	case EventDocumentSigned:
		return DocumentChanged(SampleApplicationUID, DocumentSigned), nil
	case EventFundingChanged:
		return FundingChanged(SampleApplicationUID, FundingRequested), nil
	case EventFundingSettled:
		return FundingChanged(SampleApplicationUID, FundingSettled), nil
	case EventFundingCancelled:
		return FundingChanged(SampleApplicationUID, FundingCancelled), nil
	case EventFundingReturned:
		return FundingChanged(SampleApplicationUID, FundingReturned), nil
	case EventTaskCreated:
		return TaskCreated(SampleApplicationUID, "Upload proof of income", TaskPending), nil
	case EventTaskUpdated:
		return TaskUpdated(SampleApplicationUID, "Upload proof of income", TaskCompleted), nil
	}
	return Event{}, Invalid("event", "%q must be an event kind, which %q is not", "event", kind)
}

func sampleOffer(approved, rate string) Offer {
	offer := Offer{
		Term: "120", BorrowerMax: Cents(1_500_000), ProjectMax: Cents(1_200_000),
		MaxAmount: Cents(1_200_000),
	}
	var errs FieldErrors
	offer.ApprovedAmount = errs.Money("approved_amount", approved)
	offer.InterestRate = errs.Percent("interest_rate", rate)
	offer.MerchantFeePercentage = errs.Percent("merchant_fee_percentage", "3.75")
	return offer
}

func (o Offer) payload(withMax bool) OfferPayload {
	payload := OfferPayload{
		Term:                      o.Term,
		InterestRate:              o.InterestRate.String(),
		BorrowerMaxApprovedAmount: o.BorrowerMax.String(),
		ProjectMaxApprovedAmount:  o.ProjectMax.String(),
		ApprovedAmount:            o.ApprovedAmount.String(),
		MerchantFeePercentage:     o.MerchantFeePercentage.String(),
	}
	if withMax {
		payload.MaxAmount = o.MaxAmount.String()
	}
	return payload
}
