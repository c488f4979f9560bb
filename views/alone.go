package views

// SignIn is the sign-in page.
type SignIn struct {
	Environment string
	Theme       string
	// Email is what was typed before.
	Email string
	// Next is the page to go to afterwards, a path of the console.
	Next string
	// Fault says why signing in failed, Notice why it is asked for.
	Fault  string
	Notice string
	// Provider names the OpenID Connect provider; empty without one.
	Provider string
}

// ToProvider is the page between the console and the provider.
type ToProvider struct {
	Environment string
	Theme       string
	// Provider names the OpenID Connect provider, Href is its page.
	Provider string
	Href     string
}

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
