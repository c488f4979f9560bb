package ui

import "slices"

// ErrorPageProps are a page that says what went wrong.
type ErrorPageProps struct {
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
	// Again is the form that could not be judged, to be sent once more as it was; nil
	// where that makes no sense.
	Again *AgainForm
	// BackHref leads to where one probably came from, named by BackLabel; empty
	// for nothing nearer than the overview.
	BackHref, BackLabel string
	// Frame surrounds the page for who is signed in, nil for anybody else.
	Frame *Frame
}

// AgainForm is a form with everything that was typed but secrets, its token included.
type AgainForm struct {
	Action string
	// Fields are in the order in which they were sent.
	Fields []AgainField
	// SignIn tells that somebody has to sign in first.
	SignIn bool
}

// AgainField is one value of a form that is sent again.
type AgainField struct {
	HiddenField

	// Label names a secret, which has to be typed again; empty for what is kept.
	Label string
}

// asksSecrets tells that something has to be typed again.
func (f AgainForm) asksSecrets() bool {
	return slices.ContainsFunc(f.Fields, func(field AgainField) bool { return field.Label != "" })
}
