package subscriptions

import (
	"strconv"
	"time"

	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// SubscriptionPage is the page of one subscription, one tab of it.
type SubscriptionPage struct {
	ui.Frame
	UID         string
	PartnerUID  string
	PartnerName string
	URL         string
	State       string
	Version     int
	// Tab is the one that is shown, Tabs all of them.
	Tab  string
	Tabs []ui.Tab
	// MayChange tells that the reader may change the subscription.
	MayChange bool
	// Banner says in plain words how it goes; its title is empty when all is well.
	Banner ui.Diagnosis
	// Waiting is how many deliveries have not gone out, up to a bound.
	Waiting string
	// Recover and Replay lead to bulk re-sends; empty where they do not apply.
	Recover string
	Replay  string

	Activity      SubscriptionActivity
	Configuration Configuration
	Secret        SecretTab
	Health        HealthTab
	Versions      VersionsTab
	// StreamURL and PollURL keep the activity up to date.
	StreamURL string
	PollURL   string
}

// SubscriptionActivity is what was sent lately, and what went wrong.
type SubscriptionActivity struct {
	Rows []ui.DeliveryRow
	// Groups are the errors of the last days.
	Groups []ErrorGroup
}

// ErrorGroup is a kind of failure that came up.
type ErrorGroup struct {
	HTTPStatus  int
	ErrorClass  string
	Count       int
	First, Last time.Time
	// Href leads to the deliveries that ended like this.
	Href string
}

// Configuration is what a subscription sends and how.
type Configuration struct {
	Auth   string
	Events []EventChoice
	// AllEvents and AllMerchants tell that nothing was left out.
	AllEvents    bool
	Merchants    []string
	AllMerchants bool
	Headers      []ui.HeaderView
	// Rate is in requests a second, 0 without a limit.
	Rate    int
	Created time.Time
	Updated time.Time
}

// rate words the pace.
func (c Configuration) rate() string {
	if c.Rate == 0 {
		return "No limit"
	}
	return "At most " + ui.Plural(c.Rate, "request", "requests") + " a second"
}

// SecretTab is what can be told and done about a subscription's secret.
type SecretTab struct {
	Auth string
	// PreviousUntil is when the overlap of a rotation ends, zero for none.
	PreviousUntil time.Time
	// New is a secret that is shown this once, else empty.
	New      string
	Snippets []Snippet
	// Match is the answer to a comparison, nil for none.
	Match *ui.Notice
	// Fault says why nothing was compared; empty for no fault.
	Fault string
}

// VersionRow is one version in the list.
type VersionRow struct {
	Number int
	By     string
	At     time.Time
	// Change says what was changed.
	Change string
	// Current tells that it is in force.
	Current bool
	// Restore leads to the form that brings it back; empty where it cannot be.
	Restore string
}

// VersionsTab lists the versions and compares two of them.
type VersionsTab struct {
	Rows []VersionRow
	// From and To are the versions to compare, 0 for none.
	From, To int
	Diff     []DiffRow
	// Options are the versions to choose from.
	Options []ui.Option
	Path    string
}

// DiffRow is a setting that differs.
type DiffRow struct {
	Setting, Before, After string
}

// paused and deleted tell the state.
func (p SubscriptionPage) paused() bool { return p.State == "paused" }

func (p SubscriptionPage) deleted() bool { return p.State == "deleted" }

// act is the page of an action.
func (p SubscriptionPage) act(action string) string {
	return paths.To(paths.Subscription, p.UID) + "/" + action
}

func errorGroupTable(groups []ErrorGroup) ui.TableProps[ErrorGroup] {
	return ui.TableProps[ErrorGroup]{
		Caption: "Failed attempts of the last 7 days, the most frequent first",
		RowID: func(g ErrorGroup) string {
			return "error-" + g.ErrorClass + "-" + strconv.Itoa(g.HTTPStatus)
		},
		Href: func(g ErrorGroup) string { return g.Href },
		Rows: groups,
		Columns: []ui.Column[ErrorGroup]{
			{Title: "Result", Header: true, Cell: groupResultCell},
			{Title: "Attempts", Class: "w-short end", Cell: groupCountCell},
			{Title: "First seen", Class: "col-a w-time end", Cell: groupFirstCell},
			{Title: "Last seen", Class: "w-time end", Cell: groupLastCell},
		},
	}
}

func versionTable(rows []VersionRow) ui.TableProps[VersionRow] {
	return ui.TableProps[VersionRow]{
		Caption: "Versions, newest first",
		RowID:   func(r VersionRow) string { return "version-" + strconv.Itoa(r.Number) },
		Rows:    rows,
		Columns: []ui.Column[VersionRow]{
			{Title: "Version", Header: true, Class: "w-version", Cell: versionNumberCell},
			{Title: "What", Cell: versionChangeCell},
			{Title: "Who", Class: "col-a w-third", Cell: versionByCell},
			{Title: "When", Class: "col-a w-time end", Cell: versionTimeCell},
			{Title: "Action", Class: "w-id end", Cell: versionActCell},
		},
	}
}

// ActionForm is the page of an action that asks for a reason first.
type ActionForm struct {
	ui.Frame
	UID     string
	URL     string
	Partner string
	Action  string
	// Consequences say what will happen, one sentence each.
	Consequences []string
	// Confirm is what must be typed to go on; empty for nothing.
	Confirm string
	Typed   string
	Reason  string
	// Fault is what was wrong about what was typed.
	Fault string
	// Danger paints the button red.
	Danger bool
	Button string
	Icon   string
	// Version is the one to restore, 0 for other actions.
	Version int
	// Base is the version that the reader looked at.
	Base int
	Diff []DiffRow
	// NeedsToken asks for the token anew, SecretHeaders for the values of those headers;
	// MayDropHeaders offers to leave all headers out.
	NeedsToken     bool
	SecretHeaders  []string
	MayDropHeaders bool
	// Faults are what is wrong about them, by "secret" and "header-NAME".
	Faults map[string]string
}

// RotateForm puts a new secret in force.
type RotateForm struct {
	ui.Frame
	UID     string
	URL     string
	Partner string
	Auth    string
	// Mode is "generate" or "paste".
	Mode    string
	Secret  string
	Overlap string
	// Overlaps are the lengths to choose from.
	Overlaps []ui.Option
	Reason   string
	Faults   map[string]string
}

func (f RotateForm) field(name, label, hint string) ui.FieldProps {
	return ui.FieldProps{ID: name, Label: label, Hint: hint, Fault: f.Faults[name]}
}

// faults lists the wrong fields in the order of the form.
func (f RotateForm) faults() []ui.FilterFault {
	var found []ui.FilterFault
	for _, name := range []string{"secret", "overlap"} {
		if text := f.Faults[name]; text != "" {
			found = append(found, ui.FilterFault{Href: "#" + name, Text: text})
		}
	}
	return found
}

// TestForm sends a test event, and shows what became of the last one.
type TestForm struct {
	ui.Frame
	UID     string
	URL     string
	Partner string
	Paused  bool
	Event   string
	Events  []ui.Option
	// Result is the test that was sent, nil before.
	Result *TestResult
	Fault  string
}

// TestResult is a test event on its way.
type TestResult struct {
	Delivery  ui.DeliveryRow
	Attempts  []ui.AttemptView
	Diagnosis ui.Diagnosis
	Body      []byte
	// Done tells that nothing more will come of it.
	Done      bool
	StreamURL string
	PollURL   string
}
