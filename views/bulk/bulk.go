// Package bulk renders bulk re-sends: their list, drafts, and progress.
package bulk

import (
	"time"

	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/ui"
)

// Chip describes the state of a bulk re-send. A state that it does not know
// is shown as it is written.
func Chip(state string) ui.ChipProps {
	switch state {
	case "draft":
		return ui.ChipProps{Icon: "file-text", Word: "Draft", Tone: ui.Mute}
	case "running":
		return ui.ChipProps{Icon: "send", Word: "Running", Tone: ui.Calm}
	case "paused":
		return ui.ChipProps{Icon: "pause", Word: "Paused", Tone: ui.Warn}
	case "cancelled":
		return ui.ChipProps{Icon: "ban", Word: "Cancelled", Tone: ui.Mute}
	case "finished":
		return ui.ChipProps{Icon: "circle-check", Word: "Finished", Tone: ui.Good}
	}
	return ui.ChipProps{Icon: "circle-help", Word: state, Tone: ui.Mute}
}

// ItemChip describes what became of one item of a bulk re-send.
func ItemChip(state string) ui.ChipProps {
	switch state {
	case "waiting":
		return ui.ChipProps{Icon: "clock", Word: "Waiting", Tone: ui.Mute}
	case "sent":
		return ui.ChipProps{Icon: "send", Word: "Under way", Tone: ui.Calm}
	case "skipped":
		return ui.ChipProps{Icon: "ban", Word: "Skipped", Tone: ui.Odd}
	}
	return ui.DeliveryChip(state)
}

// SkipWord says why something is left out of a bulk re-send.
func SkipWord(reason string) string {
	switch reason {
	case "subscription_deleted":
		return "Subscription deleted"
	case "body_removed":
		return "Body removed by retention"
	case "duplicate":
		return "A later re-send of the same event is in the set"
	case "under_way":
		return "Still under way, or in another bulk re-send"
	case "delivered_already":
		return "Delivered already"
	case "newer_delivered":
		return "A newer event was delivered"
	}
	return reason
}

// Table lists bulk re-sends.
func Table(rows []bulk.Resend) ui.TableProps[bulk.Resend] {
	return ui.TableProps[bulk.Resend]{
		Caption: "Bulk re-sends, newest first",
		RowID:   func(b bulk.Resend) string { return "b-" + b.UID.String() },
		Rows:    rows,
		Columns: []ui.Column[bulk.Resend]{
			{
				Title: "State", Class: "w-state",
				Chip: func(b bulk.Resend) ui.ChipProps { return Chip(string(b.State)) },
			},
			{Title: "What", Header: true, Cell: whatCell},
			{
				Title: "Partner", Class: "col-b w-fifth",
				Text: func(b bulk.Resend) string { return b.PartnerName },
			},
			{Title: "Progress", Class: "col-a w-result", Cell: progressCell},
			{
				Title: "By", Class: "col-c w-fifth",
				Text: func(b bulk.Resend) string { return b.CreatedBy },
			},
			{
				Title: "Created", Class: "w-time end",
				Time: func(b bulk.Resend) time.Time { return b.CreatedAt },
			},
		},
	}
}

// Start is the form that recovers what failed or replays what was never
// sent.
type Start struct {
	// Kind is "recover" or "replay".
	Kind          string
	Subscription  string
	Since, Until  string
	Subscriptions []ui.Option
	Pick          *ui.Picker
	Faults        map[string]string
}

// field describes a control with its fault.
func (p Start) field(name, label, hint string) ui.FieldProps {
	return ui.FieldProps{ID: "bulk-" + name, Label: label, Hint: hint, Fault: p.Faults[name]}
}

// Facts are what the pages of one bulk re-send have in common.
type Facts struct {
	UID     string
	State   string
	What    string
	Words   []string
	Partner string
	// Source leads back to the list that the choice was made in, empty without.
	Source  string
	Reason  string
	By      string
	Created time.Time
	// ConfirmedBy and Confirmed are zero for a draft.
	ConfirmedBy      string
	Confirmed, Ended time.Time
	Pace             int
	SkipNewer        bool
	SkipDelivered    bool
}

// Draft is the page of a draft: what confirming it would do.
type Draft struct {
	Facts
	// Total is the exact count of deliveries that would be sent.
	Total   int
	Skips   int
	Takes   time.Duration
	Lanes   []LaneRow
	Skipped []SkipRow
	Risks   []Risk
	// Typed tells that the count must be typed to confirm.
	Typed bool
	// Asking shows the confirmation on the page, without a dialog.
	Asking bool
	Count  string
	Faults map[string]string
	// Fault is what keeps the whole from being confirmed.
	Fault string
	// Oldest and Newest are the times of the events.
	Oldest, Newest time.Time
	MaxPace        int
}

// Risk is something to think about before confirming.
type Risk struct {
	Count int
	Text  string
}

// sendNote and skipNote go with the numbers of what is sent and what is not.
func (p Draft) sendNote() string {
	if p.Total == 1 {
		return "new delivery, exactly"
	}
	return "new deliveries, exactly"
}

func (p Draft) skipNote() string {
	if len(p.Skipped) == 0 {
		return "nothing that was chosen"
	}
	return "see why below"
}

// SkipRow is a reason for leaving out, and how many it leaves out.
type SkipRow struct {
	Reason string
	Count  int
}

// LaneRow is one endpoint of a bulk re-send.
type LaneRow struct {
	UID, State string
	subscription.Endpoint
	// Events names the kinds with their counts; empty once it runs.
	Events []string
	Total  int
	// Waiting, Sent and so on are zero for a draft.
	Waiting, Sent, Delivered, Failed, Cancelled, Skipped int
}

// progress says how far a lane has come.
func (r LaneRow) progress() string {
	text := ui.Number(r.Total-r.Waiting) + " of " + ui.Number(r.Total) + " sent"
	if r.Skipped > 0 {
		text += ", " + ui.Number(r.Skipped) + " skipped"
	}
	return text
}

func draftLaneTable(rows []LaneRow) ui.TableProps[LaneRow] {
	table := laneTable(rows)
	table.Columns = []ui.Column[LaneRow]{
		{Title: "State", Class: "w-state", Cell: laneStateCell},
		{Title: "Endpoint", Header: true, Cell: laneURLCell},
		{Title: "Events", Class: "col-a w-third", Cell: laneEventsCell},
		{Title: "Deliveries", Class: "w-rate end", Cell: laneTotalCell},
	}
	return table
}

func laneTable(rows []LaneRow) ui.TableProps[LaneRow] {
	return ui.TableProps[LaneRow]{
		Caption: "Endpoints, the largest share first",
		RowID:   func(r LaneRow) string { return "lane-" + r.UID },
		Rows:    rows,
		Columns: []ui.Column[LaneRow]{
			{Title: "State", Class: "w-state", Cell: laneStateCell},
			{Title: "Endpoint", Header: true, Cell: laneURLCell},
			{Title: "Progress", Class: "w-third", Cell: laneProgressCell},
			{Title: "Delivered", Class: "col-a w-rate end", Named: true, Cell: laneDeliveredCell},
			{Title: "Failed", Class: "col-a w-rate end", Named: true, Cell: laneFailedCell},
		},
	}
}
