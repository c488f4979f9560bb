package deliveries

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"drawbridge/internal/alert"
	"drawbridge/internal/application"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/diagnose"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// Resend is a delivery that may be re-sent.
type Resend struct {
	Delivery delivery.Detail
	// Subscription is its present state.
	Subscription subscription.Subscription
	// Application is the event's application, the zero value for a test.
	Application application.Summary
	// NewerDelivered means that a later event of the application was delivered.
	NewerDelivered bool
	// Resends are the re-sends of this delivery, newest first.
	Resends []delivery.Delivery
	// Reason and Error are the submitted reason and what is wrong with it.
	Reason, Error string
}

// Page is the content of a delivery's page.
type Page struct {
	Resend
	// Bulk is the bulk re-send that created this delivery, the nil UUID if none.
	Bulk uuid.UUID
	// Alert is the open alert about this failed delivery, nil if there is none.
	Alert *alert.Item
	// Ledger is the event's outcome for each subscription of the partner; MoreLedger means
	// that there are more lines, which the event's page lists.
	Ledger     []delivery.LedgerLine
	MoreLedger bool
	// Related are other deliveries of the application, newest first.
	Related []delivery.Delivery
	// Changed names the settings of the subscription that have changed since the last attempt.
	Changed []string
	// ListHref is the list that the page was opened from, NewerHref and OlderHref the adjacent
	// deliveries in that list; empty if there is none.
	ListHref, NewerHref, OlderHref string
}

// Possible reports whether the subscription still exists.
func (r Resend) Possible() bool { return r.Subscription.State != subscription.StateDeleted }

// last returns the last attempt, the zero value if there is none.
func (r Resend) last() delivery.Attempt {
	if len(r.Delivery.Attempts) == 0 {
		return delivery.Attempt{}
	}
	return r.Delivery.Attempts[len(r.Delivery.Attempts)-1]
}

// hash is the hash of the body.
func (r Resend) hash() string {
	hash := sha256.Sum256(r.Delivery.Body)
	return hex.EncodeToString(hash[:])
}

// mayCancel reports whether another attempt is due and the reader may cancel it.
func (r Resend) mayCancel(ctx context.Context) bool {
	return !r.Delivery.State.IsFinal() && ui.May(ctx, paths.DeliveriesCancel)
}

// risks lists what to consider before re-sending.
func (r Resend) risks() []string {
	var found []string
	switch r.Delivery.State {
	case delivery.StateDelivered:
		found = append(found, "The partner has received this event already and will get it again.")
	case delivery.StatePending, delivery.StateRetrying:
		found = append(found, "It is still being tried by itself: the partner may get it twice.")
	case delivery.StateFailed, delivery.StateCancelled:
		if r.Delivery.MadeGoodBy != nil {
			found = append(found, "The partner has received this event by another delivery already and "+
				"will get it again.")
		}
	}
	if slices.ContainsFunc(r.Resends, func(d delivery.Delivery) bool { return !d.State.IsFinal() }) {
		found = append(found, "A re-send of it is under way: the partner may get it twice.")
	}
	changed := false
	for _, attempt := range r.Delivery.Attempts {
		if attempt.ErrorClass == sender.ClassUnknown {
			found = append(found, fmt.Sprintf(
				"The outcome of attempt %d is unknown: it may have arrived.", attempt.Number))
		}
		changed = changed || attempt.SubscriptionVersion != r.Subscription.Version
	}
	if changed {
		found = append(found, "The subscription was changed since; the re-send uses it as it is now.")
	}
	if r.NewerDelivered {
		found = append(found,
			"A later event of this application was delivered already: the partner gets this one after it.")
	}
	if r.Subscription.State == subscription.StatePaused {
		found = append(found, "The subscription is paused: the re-send waits until it is resumed.")
	}
	return found
}

// wait describes the pause between an attempt and the one before it.
func wait(previous, next ui.AttemptView) string {
	pause := next.StartedAt.Sub(previous.StartedAt.Add(previous.Duration))
	if pause <= 0 {
		return "then"
	}
	if pause > time.Second {
		pause = pause.Round(time.Second)
	}
	return ui.Duration(pause.Round(time.Millisecond)) + " later"
}

// forPartner returns a text that support can send to a partner as it is. It contains only
// what the partner has anyway: no secret, and none of the partner's headers.
func forPartner(detail delivery.Detail) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Webhook %s for application %s (status %q)\n",
		ui.EventWord(string(detail.Event)), detail.ApplicationUID, detail.Status)
	fmt.Fprintf(&text, "Delivery %s (header x-drawbridge-delivery)\n", detail.UID)
	if len(detail.Attempts) == 0 {
		fmt.Fprintf(&text, "To be sent to %s\n", detail.URL)
	}
	sentTo := ""
	for _, attempt := range detail.Attempts {
		if attempt.URL != sentTo {
			sentTo = attempt.URL
			fmt.Fprintf(&text, "Sent to %s\n", cmp.Or(sentTo, "an address that was not recorded"))
		}
		answer := fmt.Sprintf("HTTP %d", attempt.HTTPStatus)
		if attempt.HTTPStatus == 0 {
			answer = "no answer: " + attempt.Error
		}
		fmt.Fprintf(&text, "Attempt %d at %s: %s, after %s\n", attempt.Number,
			attempt.StartedAt.UTC().Format(time.RFC3339), answer, ui.Duration(attempt.Duration))
	}
	fmt.Fprintf(&text, "State: %s\n", detail.State)
	if detail.State != delivery.StateDelivered && len(detail.Attempts) > 0 {
		why := diagnose.Attempt(detail.Attempts[len(detail.Attempts)-1])
		text.WriteString(strings.TrimSpace(why.Summary) + "\n")
		answered := detail.Attempts[len(detail.Attempts)-1].ResponseBody
		if len(answered) > 0 && utf8.Valid(answered) {
			quoted := strings.TrimSpace(string(answered))
			if len(answered) > maxQuoted {
				quoted = strings.ToValidUTF8(string(answered[:maxQuoted]), "") + " …"
			}
			fmt.Fprintf(&text, "Body of the last answer:\n%s\n", ui.Visible(quoted))
		}
	}
	return text.String()
}

// maxQuoted is how much of a response body is quoted to the partner, in bytes.
const maxQuoted = 2 << 10

// relatedTable lists other deliveries of the application, all to the same partner.
// Endpoints are shown in full, because several may start alike.
func relatedTable(rows []delivery.Delivery) ui.TableProps[delivery.Delivery] {
	table := ui.Without(ui.DeliveryTable(rows), "Application", "Attempts", "Took")
	for i, column := range table.Columns {
		if column.Title == "Destination" {
			table.Columns[i].Class, table.Columns[i].Cell = "col-b w-dest whole", relatedEndpointCell
		}
	}
	return table
}

// resendTable lists the re-sends of a delivery.
func resendTable(rows []delivery.Delivery) ui.TableProps[delivery.Delivery] {
	return ui.TableProps[delivery.Delivery]{
		Caption: "Re-sends of this delivery, newest first",
		RowID:   func(d delivery.Delivery) string { return "resend-" + d.UID.String() },
		Rows:    rows,
		Columns: []ui.Column[delivery.Delivery]{
			{Title: "State", Class: "w-state", Chip: ui.DeliveryChipOf},
			{Title: "Delivery", Header: true, Cell: resendLinkCell},
			{Title: "By", Class: "col-b w-third", Cell: resendByCell},
			{Title: "Reason", Class: "col-a w-third", Cell: resendReasonCell},
			ui.Times("Created", "w-time end", func(d delivery.Delivery) time.Time { return d.CreatedAt }),
		},
	}
}
