package bulk

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
)

const (
	// MaxItems bounds the size of one bulk re-send, so that planning it and freezing its set
	// take only part of a request's database time, on a busy server too.
	MaxItems = 50_000
	// MaxChoice bounds the deliveries or subscriptions that one bulk re-send may name
	// individually.
	MaxChoice = 1000
	// TypedAbove is the count above which a confirmation must repeat the count.
	TypedAbove = 1000
	// DefaultPace is how many deliveries per second go to one subscription.
	DefaultPace = 10
	// MaxPace is the highest pace.
	MaxPace = 500
)

// Kind is how the set of a bulk re-send is selected.
type Kind string

// The kinds of bulk re-send.
const (
	// KindSelection re-sends named deliveries.
	KindSelection Kind = "selection"
	// KindFilter re-sends all deliveries that match a filter.
	KindFilter Kind = "filter"
	// KindRecover re-sends deliveries that failed and whose event did not arrive later.
	KindRecover Kind = "recover"
	// KindReplay sends events that a subscription wants and never got.
	KindReplay Kind = "replay"
)

// State is how far a bulk re-send has come:
//
//	draft ----> running <----> paused
//	               |  \          |
//	               v   +---------+--> cancelled
//	           finished
//
// It is finished when every item has ended, not when the last item was sent.
type State string

// The states of a bulk re-send.
const (
	StateDraft     State = "draft"
	StateRunning   State = "running"
	StatePaused    State = "paused"
	StateCancelled State = "cancelled"
	StateFinished  State = "finished"
)

// ItemState is the state of one item of a bulk re-send.
type ItemState string

// The states of an item. A sent one has a new delivery that is still open; a cancelled
// one was withdrawn before it was sent, or its new delivery was.
const (
	ItemWaiting   ItemState = "waiting"
	ItemSent      ItemState = "sent"
	ItemDelivered ItemState = "delivered"
	ItemFailed    ItemState = "failed"
	ItemCancelled ItemState = "cancelled"
	ItemSkipped   ItemState = "skipped"
)

// ItemStates lists every state, those that need attention first.
func ItemStates() []ItemState {
	return []ItemState{ItemFailed, ItemSkipped, ItemCancelled, ItemWaiting, ItemSent, ItemDelivered}
}

// SkipReason is why an item is not sent.
type SkipReason string

// The reasons, in the order in which they are checked.
const (
	// SkipDeleted is for a subscription that was deleted.
	SkipDeleted SkipReason = "subscription_deleted"
	// SkipBodyGone is for an event whose body retention has removed.
	SkipBodyGone SkipReason = "body_removed"
	// SkipDuplicate is for a delivery when the same set has a later one of the same event to
	// the same subscription.
	SkipDuplicate SkipReason = "duplicate"
	// SkipUnderWay is for an event that is still on its way to the subscription, or is
	// waiting in another bulk re-send.
	SkipUnderWay SkipReason = "under_way"
	// SkipDelivered is for an event that the subscription has already received.
	SkipDelivered SkipReason = "delivered_already"
	// SkipNewer is for an event that a delivered later one of the same
	// application has overtaken.
	SkipNewer SkipReason = "newer_delivered"
)

// Scope defines the contents of a bulk re-send. Only deliveries and events of one partner
// are searched for them.
type Scope struct {
	PartnerUID uuid.UUID `json:"partner_uid"`
	Kind       Kind      `json:"kind"`
	// Deliveries are those of KindSelection.
	Deliveries []uuid.UUID `json:"deliveries,omitempty"`
	// Filter is that of KindFilter.
	Filter delivery.Filter `json:"filter,omitzero"`
	// Subscriptions are those of KindRecover and KindReplay.
	Subscriptions []uuid.UUID `json:"subscriptions,omitempty"`
	// Since, inclusive, and Until, exclusive, bound the creation of the failed
	// deliveries of KindRecover, and the events of KindReplay.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Merchants narrow KindRecover to some of the partner's merchants; none means all.
	Merchants []uuid.UUID `json:"merchants,omitempty"`
	// ByEvent makes Since and Until bound the times of KindRecover's events instead of the
	// creation of their deliveries.
	ByEvent bool `json:"by_event,omitempty"`
	// EventUID limits KindReplay to one event; zero for a range.
	EventUID uuid.UUID `json:"event_uid,omitzero"`
}

// Scan reads the scope as it is stored.
func (b *Scope) Scan(value any) error {
	text, _ := value.([]byte)
	if err := json.Unmarshal(text, b); err != nil {
		return fmt.Errorf("reading the scope of a bulk re-send: %w", err)
	}
	return nil
}

// Options are the settings besides the scope.
type Options struct {
	// SkipNewer leaves out events that a delivered later event has overtaken, SkipDelivered
	// those that the subscription has already received.
	SkipNewer     bool `db:"skip_newer"`
	SkipDelivered bool `db:"skip_delivered"`
	// Pace is in deliveries per second to one subscription, from 1 to MaxPace.
	Pace int `db:"pace"`
}

// Resend is a bulk re-send.
type Resend struct {
	UID         uuid.UUID `db:"bulk_uid"`
	PartnerName string    `db:"partner_name"`
	Scope       Scope     `db:"scope"`
	Options     Options   `db:"options"`
	State       State     `db:"state"`
	// Reason is empty for a draft.
	Reason    string    `db:"reason"`
	CreatedBy string    `db:"created_by"`
	CreatedAt time.Time `db:"created_at"`
	// ConfirmedBy and ConfirmedAt are zero for a draft.
	ConfirmedBy string    `db:"confirmed_by"`
	ConfirmedAt time.Time `db:"-"`
	// EndedAt is when it was finished or cancelled, zero before.
	EndedAt time.Time `db:"-"`
	// Counts are zero for a draft.
	Counts Counts `db:"counts"`
}

// Counts holds the number of items in each state.
type Counts struct {
	Waiting   int `db:"waiting"   json:"waiting"`
	Sent      int `db:"sent"      json:"sent"`
	Delivered int `db:"delivered" json:"delivered"`
	Failed    int `db:"failed"    json:"failed"`
	Cancelled int `db:"cancelled" json:"cancelled"`
	Skipped   int `db:"skipped"   json:"skipped"`
}

// Total is how many items were selected and not skipped.
func (c Counts) Total() int { return c.Waiting + c.Sent + c.Delivered + c.Failed + c.Cancelled }

// Gone is how many of those were sent, whatever their outcome.
func (c Counts) Gone() int { return c.Sent + c.Delivered + c.Failed }

// Ended is how many of those have ended.
func (c Counts) Ended() int { return c.Delivered + c.Failed + c.Cancelled }

// All is how many items there are.
func (c Counts) All() int { return c.Total() + c.Skipped }

// Of returns the count of one state.
func (c Counts) Of(state ItemState) int {
	return map[ItemState]int{
		ItemWaiting: c.Waiting, ItemSent: c.Sent, ItemDelivered: c.Delivered,
		ItemFailed: c.Failed, ItemCancelled: c.Cancelled, ItemSkipped: c.Skipped,
	}[state]
}

// Target is a subscription that a bulk re-send goes to, with its progress there.
type Target struct {
	SubscriptionUID uuid.UUID `db:"subscription_uid"`
	subscription.Endpoint
	// State is the subscription's. While it is paused, the items for it wait.
	State subscription.State `db:"state"`
	// Rate is the subscription's own limit, in deliveries per second; nil for none.
	Rate *int `db:"rate"`
	// PacedAt is the time up to which the pace is used up, MovedAt when an item last changed.
	PacedAt time.Time `db:"paced_at"`
	MovedAt time.Time `db:"moved_at"`
	Counts
}

// PaceOf is the pace to the target: that of the bulk re-send, but at most the
// subscription's own rate.
func (l Target) PaceOf(pace int) int {
	if l.Rate != nil {
		return min(pace, *l.Rate)
	}
	return pace
}

// Item is one event to be sent to one subscription again.
type Item struct {
	Position        int       `db:"position"`
	SubscriptionUID uuid.UUID `db:"subscription_uid"`
	subscription.Endpoint
	EventUID uuid.UUID         `db:"event_uid"`
	EventAt  time.Time         `db:"event_at"`
	Event    lending.EventKind `db:"event"`
	// ApplicationUID is nil for a test event.
	ApplicationUID *uuid.UUID `db:"application_uid"`
	Status         string     `db:"status"`
	// DeliveryUID is the delivery to re-send, nil for an event that was never sent.
	DeliveryUID *uuid.UUID `db:"delivery_uid"`
	State       ItemState  `db:"state"`
	// SkipReason is nil unless the item is skipped.
	SkipReason *SkipReason `db:"skip_reason"`
	// NewUID is the delivery that was created for it, nil before.
	NewUID *uuid.UUID `db:"new_uid"`
	// HTTPStatus and ErrorClass are those of the new delivery's last attempt.
	HTTPStatus *int    `db:"last_http_status"`
	ErrorClass *string `db:"last_error_class"`
}
