package views

// Overview is the console's first page.
type Overview struct {
	Frame
	// Span words the time that the numbers cover: "last 24 hours".
	Span  string
	Tiles []Tile
	// Hours plots the deliveries by outcome.
	Hours BarPlotProps
	// Attention lists failed deliveries, newest first.
	Attention []DeliveryRow
	// AttentionHref leads to all of them.
	AttentionHref string
	// Unavailable tells that the numbers could not be loaded.
	Unavailable bool
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
