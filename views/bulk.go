package views

import (
	"time"
)

// BulkChip describes the state of a bulk re-send. A state that it does not know
// is shown as it is written.
func BulkChip(state string) ChipProps {
	switch state {
	case "draft":
		return ChipProps{"file-text", "Draft", Mute}
	case "running":
		return ChipProps{"send", "Running", Calm}
	case "paused":
		return ChipProps{"pause", "Paused", Warn}
	case "cancelled":
		return ChipProps{"ban", "Cancelled", Mute}
	case "finished":
		return ChipProps{"circle-check", "Finished", Good}
	}
	return ChipProps{"circle-help", state, Mute}
}

// ItemChip describes what became of one item of a bulk re-send.
func ItemChip(state string) ChipProps {
	switch state {
	case "waiting":
		return ChipProps{"clock", "Waiting", Mute}
	case "sent":
		return ChipProps{"send", "Under way", Calm}
	case "skipped":
		return ChipProps{"ban", "Skipped", Odd}
	}
	return DeliveryChip(state)
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

// BulkRow is one bulk re-send in a list.
type BulkRow struct {
	UID   string
	State string
	// What says in words what is sent again.
	What    string
	Partner string
	Total   int
	// Done is how many have ended, Failed how many of them in vain.
	Done, Failed int
	By           string
	Created      time.Time
}

// ended says how many have ended.
func (r BulkRow) ended() string { return Number(r.Done) + " of " + Number(r.Total) }

// failed says how many of them in vain.
func (r BulkRow) failed() string { return Number(r.Failed) + " failed" }

// BulkList is the page that lists bulk re-sends.
type BulkList struct {
	Frame
	Tabs []Tab
	// Filtered tells that something narrows the list.
	Filtered bool
	Rows     []BulkRow
	Summary  string
	// Newest and Older are neighbouring pages, empty where there is none.
	Newest, Older string
}

func bulkTable(rows []BulkRow) TableProps[BulkRow] {
	return TableProps[BulkRow]{
		Caption: "Bulk re-sends, newest first",
		RowID:   func(r BulkRow) string { return "b-" + r.UID },
		Href:    func(r BulkRow) string { return BulkPath(r.UID, nil) },
		Rows:    rows,
		Columns: []Column[BulkRow]{
			{Title: "State", Class: "w-state", Cell: bulkStateCell},
			{Title: "What", Header: true, Cell: bulkWhatCell},
			{Title: "Partner", Class: "col-b w-fifth", Cell: bulkPartnerCell},
			{Title: "Progress", Class: "col-a w-result", Cell: bulkProgressCell},
			{Title: "By", Class: "col-c w-fifth", Cell: bulkByCell},
			{Title: "Created", Class: "w-time end", Cell: bulkCreatedCell},
		},
	}
}

// BulkChoice asks whose deliveries are meant, where a choice holds several
// partners'.
type BulkChoice struct {
	Frame
	// Fields repeat what was asked for.
	Fields   []HiddenField
	Partners []PartnerCount
}

// PartnerCount is how many deliveries of a choice are one partner's.
type PartnerCount struct {
	UID, Name string
	Count     int
}

// BulkStart is the form that recovers what failed or replays what was never
// sent.
type BulkStart struct {
	Frame
	// Kind is "recover" or "replay".
	Kind          string
	Subscription  string
	Since, Until  string
	Subscriptions []Option
	Faults        map[string]string
}

// field describes a control with its fault.
func (p BulkStart) field(name, label, hint string) FieldProps {
	return FieldProps{ID: "bulk-" + name, Label: label, Hint: hint, Fault: p.Faults[name]}
}

// BulkFacts are what the pages of one bulk re-send have in common.
type BulkFacts struct {
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

// BulkDraft is the page of a draft: what confirming it would do.
type BulkDraft struct {
	Frame
	BulkFacts
	// Total is the exact count of deliveries that would be sent.
	Total   int
	Skips   int
	Takes   time.Duration
	Lanes   []BulkLaneRow
	Skipped []SkipRow
	Risks   []BulkRisk
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

// BulkRisk is something to think about before confirming.
type BulkRisk struct {
	Count int
	Text  string
}

// sendNote and skipNote go with the numbers of what is sent and what is not.
func (p BulkDraft) sendNote() string {
	if p.Total == 1 {
		return "new delivery, exactly"
	}
	return "new deliveries, exactly"
}

func (p BulkDraft) skipNote() string {
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

// BulkLaneRow is one endpoint of a bulk re-send.
type BulkLaneRow struct {
	UID, URL, State string
	// Events names the kinds with their counts; empty once it runs.
	Events []string
	Total  int
	// Waiting, Sent and so on are zero for a draft.
	Waiting, Sent, Delivered, Failed, Cancelled, Skipped int
}

// progress says how far a lane has come.
func (r BulkLaneRow) progress() string {
	text := Number(r.Total-r.Waiting) + " of " + Number(r.Total) + " sent"
	if r.Skipped > 0 {
		text += ", " + Number(r.Skipped) + " skipped"
	}
	return text
}

func draftLaneTable(rows []BulkLaneRow) TableProps[BulkLaneRow] {
	table := laneTable(rows)
	table.Columns = []Column[BulkLaneRow]{
		{Title: "State", Class: "w-state", Cell: laneStateCell},
		{Title: "Endpoint", Header: true, Cell: laneURLCell},
		{Title: "Events", Class: "col-a w-third", Cell: laneEventsCell},
		{Title: "Deliveries", Class: "w-rate end", Cell: laneTotalCell},
	}
	return table
}

func laneTable(rows []BulkLaneRow) TableProps[BulkLaneRow] {
	return TableProps[BulkLaneRow]{
		Caption: "Endpoints, the largest share first",
		RowID:   func(r BulkLaneRow) string { return "lane-" + r.UID },
		Rows:    rows,
		Columns: []Column[BulkLaneRow]{
			{Title: "State", Class: "w-state", Cell: laneStateCell},
			{Title: "Endpoint", Header: true, Cell: laneOutcomeCell},
			{Title: "Progress", Class: "w-third", Cell: laneProgressCell},
			{Title: "Delivered", Class: "col-a w-rate end", Cell: laneDeliveredCell},
			{Title: "Failed", Class: "col-a w-rate end", Cell: laneFailedCell},
		},
	}
}
