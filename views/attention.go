package views

import "time"

// AttentionList is the queue of what needs a human.
type AttentionList struct {
	Frame
	Tabs   []Tab
	Filter AttentionFilter
	Active []ActiveFilter
	Kinds  []Option
	Owners []Option
	Rows   []AttentionRow
	// Summary says how many there are.
	Summary string
	// Newest and Older are addresses, empty where there is no such page.
	Newest, Older string
}

// AttentionFilter is what the list was asked for.
type AttentionFilter struct {
	State, Kind, Owner string
	Faults             map[string]string
}

func (f AttentionFilter) field(name, label string) FieldProps {
	return FieldProps{ID: "filter-" + name, Label: label, Fault: f.Faults[name]}
}

func (f AttentionFilter) faults() []filterFault {
	var found []filterFault
	for _, name := range []string{"state", "kind", "owner", "cursor"} {
		if text := f.Faults[name]; text != "" {
			found = append(found, filterFault{text: text})
		}
	}
	return found
}

func (p AttentionList) filtered() bool { return p.Filter.Kind != "" || p.Filter.Owner != "" }

// AttentionRow is one matter that needs a human.
type AttentionRow struct {
	UID  string
	Kind string
	// Partner and URL are those of its subscription, empty without one.
	Partner, URL string
	// Severity is "warning" or "problem".
	Severity string
	Detail   string
	Count    int
	Opened   time.Time
	LastSeen time.Time
	Owner    string
	// SnoozedUntil is zero while it is in sight, Closed while it is open.
	SnoozedUntil time.Time
	Closed       time.Time
	ClosedBy     string
	Note         string
	// LookHref leads to what it is about, Look says where that is.
	LookHref, Look string
}

// attentionWords are what the kinds of items are called.
var attentionWords = map[string]string{
	"delivery_used_up":      "Deliveries failed",
	"outcome_unknown":       "Outcome unknown",
	"subscription_failing":  "Subscription failing",
	"certificate_expiring":  "Certificate expiring",
	"probe_failed":          "Endpoint unreachable",
	"delivery_overdue":      "Deliveries overdue",
	"never_succeeded":       "Nothing arrives",
	"mail_failed":           "E-mails failed",
	"subscription_unopened": "Nothing can be sent",
	"mail_refused":          "Mail server refuses us",
}

// AttentionKind names a kind of item for people; one it does not know is shown
// as it is written.
func AttentionKind(kind string) string {
	if word := attentionWords[kind]; word != "" {
		return word
	}
	return kind
}

// Title is what an item is called.
func (r AttentionRow) Title() string { return AttentionKind(r.Kind) }

// where is whose matter it is.
func (r AttentionRow) where() string {
	if r.URL == "" {
		return "Drawbridge itself"
	}
	return HostOf(r.URL) + " · " + r.Partner
}

func (r AttentionRow) chip() ChipProps {
	switch {
	case !r.Closed.IsZero():
		return ChipProps{"circle-check", "Closed", Mute}
	case !r.SnoozedUntil.IsZero():
		return ChipProps{"clock", "Snoozed", Calm}
	case r.Severity == "warning":
		return ChipProps{"triangle-alert", "Warning", Warn}
	}
	return ChipProps{"circle-alert", "Problem", Bad}
}

func (r AttentionRow) owner() string {
	if r.Owner == "" {
		return "nobody"
	}
	return r.Owner
}

// AttentionItem is the page of one matter.
type AttentionItem struct {
	Frame
	Row AttentionRow
	// Acts tells whether the reader may act on it, Mine whether it is theirs.
	Acts, Mine bool
	// Faults are keyed by field; Note keeps what was typed.
	Faults map[string]string
	Typed  string
}

// snoozes are for how long an item may be out of sight.
func snoozes() []Option {
	return []Option{
		{"1h", "an hour"},
		{"4h", "four hours"},
		{"24h", "a day"},
		{"168h", "a week"},
		{"720h", "30 days"},
	}
}

func attentionTable(rows []AttentionRow) TableProps[AttentionRow] {
	return TableProps[AttentionRow]{
		Caption: "What needs attention, last opened first",
		RowID:   func(r AttentionRow) string { return "item-" + r.UID },
		Href:    func(r AttentionRow) string { return AttentionItemPath(r.UID) },
		Rows:    rows,
		Columns: []Column[AttentionRow]{
			{Title: "State", Class: "w-state", Cell: attentionStateCell},
			{Title: "What", Header: true, Class: "w-what", Cell: attentionTitleCell},
			{Title: "Where", Class: "col-b", Cell: attentionWhereCell},
			{Title: "Count", Class: "end col-b w-short", Cell: attentionCountCell},
			{Title: "Owner", Class: "col-a w-place", Cell: attentionOwnerCell},
			{Title: "Since", Class: "col-c w-time", Cell: attentionSinceCell},
			{Title: "Last seen", Class: "w-time end", Cell: attentionSeenCell},
		},
	}
}
