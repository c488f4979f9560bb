// Package bulk renders bulk re-sends: their list, drafts, and progress.
package bulk

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"drawbridge/internal/webhook/bulk"
	"drawbridge/views/ui"
)

var chips = map[bulk.State]ui.ChipProps{
	bulk.StateDraft:     {Icon: "file-text", Word: "Draft", Tone: ui.Mute},
	bulk.StateRunning:   {Icon: "send", Word: "Running", Tone: ui.Calm},
	bulk.StatePaused:    {Icon: "pause", Word: "Paused", Tone: ui.Warn},
	bulk.StateCancelled: {Icon: "ban", Word: "Cancelled", Tone: ui.Mute},
	bulk.StateFinished:  {Icon: "circle-check", Word: "Finished", Tone: ui.Good},
}

// Chip describes the state of a bulk re-send.
func Chip(state bulk.State) ui.ChipProps { return ui.KnownChip(chips, state) }

// itemChips are the chips of items without a finished delivery.
var itemChips = map[bulk.ItemState]ui.ChipProps{
	bulk.ItemWaiting: {Icon: "clock", Word: "Waiting", Tone: ui.Mute},
	bulk.ItemSent:    {Icon: "send", Word: "Under way", Tone: ui.Calm},
	bulk.ItemSkipped: {Icon: "ban", Word: "Skipped", Tone: ui.Odd},
}

// ItemChip describes the outcome of one item of a bulk re-send.
func ItemChip(state bulk.ItemState) ui.ChipProps {
	if chip, known := itemChips[state]; known {
		return chip
	}
	return ui.DeliveryChip(state)
}

var skipWords = map[bulk.SkipReason]string{
	bulk.SkipDeleted:   "Subscription deleted",
	bulk.SkipBodyGone:  "Body removed by retention",
	bulk.SkipDuplicate: "A later re-send of the same event is in the set",
	bulk.SkipUnderWay:  "Still under way, or in another bulk re-send",
	bulk.SkipDelivered: "Delivered already",
	bulk.SkipNewer:     "A newer event was delivered",
}

// skipWord says why something is left out of a bulk re-send.
func skipWord(reason bulk.SkipReason) string { return cmp.Or(skipWords[reason], string(reason)) }

// Table lists bulk re-sends.
func Table(rows []bulk.Resend) ui.TableProps[bulk.Resend] {
	return ui.TableProps[bulk.Resend]{
		Caption: "Bulk re-sends, newest first",
		RowID:   func(b bulk.Resend) string { return "b-" + b.UID.String() },
		Rows:    rows,
		Columns: []ui.Column[bulk.Resend]{
			ui.Chips("State", "w-state", func(b bulk.Resend) ui.ChipProps { return Chip(b.State) }),
			{Title: "What", Header: true, Cell: whatCell},
			ui.Texts("Partner", "col-b w-fifth", func(b bulk.Resend) string { return b.PartnerName }),
			{Title: "Progress", Class: "col-a w-result", Cell: progressCell},
			ui.Texts("By", "col-c w-fifth", func(b bulk.Resend) string { return b.CreatedBy }),
			ui.Times("Created", "w-time end", func(b bulk.Resend) time.Time { return b.CreatedAt }),
		},
	}
}

// shareName names a partner, with the end of its id if another one has the same name.
func shareName(partner bulk.PartnerShare, others []bulk.PartnerShare) string {
	for _, other := range others {
		if other.Name == partner.Name && other.UID != partner.UID {
			return partner.Name + " " + ui.ShortUID(partner.UID.String())
		}
	}
	return partner.Name
}

// Start is the form that recovers failed deliveries or replays events that were never sent.
type Start struct {
	// Kind is "recover" or "replay".
	Kind         string
	Subscription string
	Since, Until string
	// Zone is the hidden field with the zone of these times.
	Zone          ui.HiddenField
	Subscriptions []ui.Option
	Pick          *ui.Picker
	Errors        map[string]string
}

// field is a control with its error.
func (p Start) field(c ui.Control) ui.Control {
	c.ID, c.Error = "bulk-"+c.Name, p.Errors[c.Name]
	return c
}

// Draft is the page of a draft: what confirming it would do. Reason is the submitted reason.
type Draft struct {
	bulk.Resend
	bulk.Plan
	// Confirming shows the confirmation on the page instead of in a dialog.
	Confirming bool
	// Seen is the hidden field that describes what the confirmation showed.
	Seen  ui.HiddenField
	Count string
	// Typed are the options that the form shows, with the pace as typed.
	Typed  bulk.Options
	Pace   string
	Errors map[string]string
	// Error says why the draft as a whole cannot be confirmed.
	Error string
}

// reasons lists the reasons for leaving out deliveries, the most frequent first.
func (p Draft) reasons() []bulk.SkipReason {
	return slices.SortedFunc(maps.Keys(p.Skipped), func(a, b bulk.SkipReason) int {
		return cmp.Or(p.Skipped[b]-p.Skipped[a], strings.Compare(string(a), string(b)))
	})
}

// progress describes the progress of a target.
func progress(l bulk.Target) string {
	text := ui.Number(l.Gone()) + " of " + ui.Number(l.Total()) + " sent"
	if l.Skipped > 0 {
		text += ", " + ui.Number(l.Skipped) + " skipped"
	}
	return text
}

func draftTargetTable(rows []bulk.PlanTarget) ui.TableProps[bulk.PlanTarget] {
	return ui.TableProps[bulk.PlanTarget]{
		Caption: "Endpoints, the largest share first",
		RowID:   func(l bulk.PlanTarget) string { return "target-" + l.SubscriptionUID.String() },
		Rows:    rows,
		Columns: []ui.Column[bulk.PlanTarget]{
			ui.Chips("State", "w-state",
				func(l bulk.PlanTarget) ui.ChipProps { return ui.SubscriptionChip(l.State) }),
			{
				Title: "Endpoint", Header: true, Cell: func(l bulk.PlanTarget) templ.Component {
					return laneEndpoint(l.SubscriptionUID, l.Endpoint)
				},
			},
			{Title: "Events", Class: "col-a w-third", Cell: targetEventsCell},
			ui.Texts("Deliveries", "w-rate end",
				func(l bulk.PlanTarget) string { return ui.Number(l.Total) }),
		},
	}
}

func targetTable(rows []bulk.Target) ui.TableProps[bulk.Target] {
	return ui.TableProps[bulk.Target]{
		Caption: "Endpoints, the largest share first",
		RowID:   func(l bulk.Target) string { return "target-" + l.SubscriptionUID.String() },
		Rows:    rows,
		Columns: []ui.Column[bulk.Target]{
			ui.Chips("State", "w-state",
				func(l bulk.Target) ui.ChipProps { return ui.SubscriptionChip(l.State) }),
			{
				Title: "Endpoint", Header: true, Cell: func(l bulk.Target) templ.Component {
					return laneEndpoint(l.SubscriptionUID, l.Endpoint)
				},
			},
			{Title: "Progress", Class: "w-third", Cell: targetProgressCell},
			ui.Texts("Delivered", "col-a w-rate end",
				func(l bulk.Target) string { return ui.Number(l.Delivered) }).Titled(),
			{Title: "Failed", Class: "col-a w-rate end", Named: true, Cell: targetFailedCell},
		},
	}
}
