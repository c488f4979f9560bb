package views

// Overview is the console's first page.
type Overview struct {
	Frame
	// Ranges are the times to choose from; Since and Until are the form's values.
	Ranges       []Tab
	Since, Until string
	// Faults are keyed by "since" and "until".
	Faults map[string]string
	// StreamURL and PollURL keep the numbers up to date; empty for a time past.
	StreamURL, PollURL string
	Numbers            OverviewNumbers
	// Unavailable tells that the numbers could not be loaded.
	Unavailable bool
}

// OverviewNumbers are what is kept up to date.
type OverviewNumbers struct {
	// Span words the time that the numbers cover: "last 24 hours".
	Span     string
	Tiles    []Tile
	Outcomes BarPlotProps
	Latency  LinePlotProps
	// Attention lists what needs a human, newest first.
	Attention []AttentionRow
	// Applications and Draws count what was begun, by state.
	Applications, Draws []CountRow
}

// Tile is one number and where it leads.
type Tile struct {
	Label string
	Value string
	Note  string
	Icon  string
	Tone  Tone
	Href  string
}

// CountRow is a number of things in a state and where they are listed.
type CountRow struct {
	ID    string
	State string
	Count string
	// Href is empty where there is no such list.
	Href string
}

func countTable(caption string, rows []CountRow) TableProps[CountRow] {
	return TableProps[CountRow]{
		Caption: caption,
		RowID:   func(r CountRow) string { return r.ID },
		Rows:    rows,
		Columns: []Column[CountRow]{
			{Title: "Status", Header: true, Cell: countStateCell},
			{Title: "Count", Class: "end", Cell: countNumberCell},
		},
	}
}
