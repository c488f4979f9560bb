package ui

import "slices"

// ErrorPageProps are the contents of an error page.
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
	// RetryHref is the page to try again, empty if that makes no sense.
	RetryHref string
	// Again is the form that could not be processed, to be sent again unchanged; nil if that
	// makes no sense.
	Again *AgainForm
	// BackHref is the page that the user probably came from, BackLabel its label; empty if
	// only the overview is known.
	BackHref, BackLabel string
	// Frame surrounds the page for a signed-in user, nil for others.
	Frame *Frame
}

// AgainForm is a submitted form without its secrets, but with its token.
type AgainForm struct {
	Action string
	// Fields are in the order of submission.
	Fields []AgainField
	// SignIn means that the user has to sign in first.
	SignIn bool
}

// AgainField is one value of a form to send again.
type AgainField struct {
	HiddenField

	// Label names a secret, which has to be typed again; empty if the value was kept.
	Label string
}

// asksSecrets reports whether something has to be typed again.
func (f AgainForm) asksSecrets() bool {
	return slices.ContainsFunc(f.Fields, func(field AgainField) bool { return field.Label != "" })
}
