package operations

import (
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// AttentionList is the queue of what needs a human.
type AttentionList struct {
	ui.Frame
	Tabs   []ui.Tab
	Filter AttentionFilter
	Active []ui.ActiveFilter
	Kinds  []ui.Option
	Owners []ui.Option
	Rows   []ui.AttentionRow
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

func (f AttentionFilter) field(name, label string) ui.FieldProps {
	return ui.FieldProps{ID: "filter-" + name, Label: label, Fault: f.Faults[name]}
}

func (f AttentionFilter) faults() []ui.FilterFault {
	var found []ui.FilterFault
	for _, name := range []string{"state", "kind", "owner", "cursor"} {
		if text := f.Faults[name]; text != "" {
			found = append(found, ui.FilterFault{Text: text})
		}
	}
	return found
}

func (p AttentionList) filtered() bool { return p.Filter.Kind != "" || p.Filter.Owner != "" }

// AttentionItem is the page of one matter.
type AttentionItem struct {
	ui.Frame
	Row ui.AttentionRow
	// Acts tells whether the reader may act on it, Mine whether it is theirs.
	Acts, Mine bool
	// Faults are keyed by field; Note keeps what was typed.
	Faults map[string]string
	Typed  string
}

// snoozes are for how long an item may be out of sight.
func snoozes() []ui.Option {
	return []ui.Option{
		{Value: "1h", Label: "an hour"},
		{Value: "4h", Label: "four hours"},
		{Value: "24h", Label: "a day"},
		{Value: "168h", Label: "a week"},
		{Value: "720h", Label: "30 days"},
	}
}

func attentionTable(rows []ui.AttentionRow) ui.TableProps[ui.AttentionRow] {
	return ui.TableProps[ui.AttentionRow]{
		Caption: "What needs attention, last opened first",
		RowID:   func(r ui.AttentionRow) string { return "item-" + r.UID },
		Href:    func(r ui.AttentionRow) string { return paths.To(paths.AttentionItem, r.UID) },
		Rows:    rows,
		Columns: []ui.Column[ui.AttentionRow]{
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
