package ui

// Fault is a page that says what went wrong.
type Fault struct {
	Environment string
	Theme       string
	// Status is the HTTP status.
	Status int
	Title  string
	// Text says what happened and what to do.
	Text string
	// RequestID is what to quote when asking for help.
	RequestID string
	// RetryHref is the page to try again, empty where that makes no sense.
	RetryHref string
	// BackHref leads to where one probably came from, named by BackLabel; empty
	// for nothing nearer than the overview.
	BackHref, BackLabel string
	// Frame surrounds the page for who is signed in, nil for anybody else.
	Frame *Frame
}
