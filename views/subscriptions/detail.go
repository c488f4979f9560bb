package subscriptions

import (
	"context"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook/health"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// Page is one tab of a subscription's page.
type Page struct {
	subscription.Subscription
	PartnerName string
	// Tab is the selected tab, Body its content.
	Tab  string
	Body templ.Component
	// Banner describes the subscription's health in plain words; its title is empty if all is well.
	Banner ui.Diagnosis
	// Recover and Replay link to bulk re-sends; empty if they do not apply.
	Recover, Replay string
}

// tabs are the links to the tabs of a subscription's page.
func (p Page) tabs() []ui.Tab {
	var tabs []ui.Tab
	for _, name := range Tabs {
		tabs = append(tabs, ui.Tab{
			Label: ui.Capital(name), Href: paths.SubscriptionTab(p.UID.String(), name),
			Current: name == p.Tab,
		})
	}
	return tabs
}

// to is the address of an action on a subscription.
func to(s subscription.Subscription, pattern string) string {
	return paths.To(pattern, s.UID.String())
}

// mayEdit reports whether the reader may change the subscription in its current state.
func mayEdit(ctx context.Context, s subscription.Subscription) bool {
	return ui.May(ctx, paths.SubscriptionEdit) && s.State != subscription.StateDeleted
}

// SecretTab is the part of the secret tab that is shown only once.
type SecretTab struct {
	// New is a secret that was just created, otherwise empty.
	New      string
	Snippets []Snippet
	// Match is the result of a comparison, nil if there was none.
	Match *ui.Notice
	// Problem says why nothing was compared, otherwise empty.
	Problem string
	// PreviousUntil is when the overlap of a rotation ends, zero if there is none.
	PreviousUntil time.Time
}

// Snippet is a program that checks signatures, in one language.
type Snippet struct {
	Language string
	Code     string
}

// Comparison is two versions and their differences.
type Comparison struct {
	From, To int
	Rows     []Difference
}

// Difference is a changed setting, in words.
type Difference struct {
	Setting, Before, After string
}

func errorGroupTable(
	s subscription.Subscription, groups []health.ErrorGroup,
) ui.TableProps[health.ErrorGroup] {
	href := paths.Where(paths.Deliveries, "subscription", s.UID.String())
	return ui.TableProps[health.ErrorGroup]{
		Caption: "Failed attempts of the last 7 days, the most recent first",
		RowID: func(g health.ErrorGroup) string {
			return "error-" + string(g.Class) + "-" + strconv.Itoa(g.Status)
		},
		Rows: groups,
		Columns: []ui.Column[health.ErrorGroup]{
			{
				Title: "Result", Header: true, Cell: func(g health.ErrorGroup) templ.Component {
					return lead(href, ui.OutcomeWord(g.Status, g.Class))
				},
			},
			ui.Texts("Attempts", "w-short end",
				func(g health.ErrorGroup) string { return ui.Number(g.Count) }).Titled(),
			ui.Times("First seen", "col-a w-time end",
				func(g health.ErrorGroup) time.Time { return g.First }).Titled(),
			ui.Times("Last seen", "w-time end",
				func(g health.ErrorGroup) time.Time { return g.Last }).Titled(),
		},
	}
}

func versionTable(
	s subscription.Subscription, rows []subscription.Version,
) ui.TableProps[subscription.Version] {
	return ui.TableProps[subscription.Version]{
		Caption: "Versions, newest first",
		RowID:   func(v subscription.Version) string { return "version-" + strconv.Itoa(v.Number) },
		Rows:    rows,
		Columns: []ui.Column[subscription.Version]{
			{
				Title: "Version", Header: true, Class: "w-version",
				Cell: func(v subscription.Version) templ.Component {
					return versionNumberCell(v, v.Number == rows[0].Number)
				},
			},
			{Title: "What", Cell: versionChangeCell},
			ui.Texts("Who", "col-a w-third", func(v subscription.Version) string { return v.ChangedBy }),
			ui.Times("When", "col-a w-time end",
				func(v subscription.Version) time.Time { return v.ChangedAt }),
			{
				Title: "Action", Class: "w-id end",
				Cell: func(v subscription.Version) templ.Component {
					return restoreCell(s, v, v.Number == rows[0].Number)
				},
			},
		},
	}
}

// change describes what a version changed, and why.
func change(v subscription.Version) string {
	return ui.If(v.Reason == "", v.Change, v.Change+" ("+v.Reason+")")
}

func versionOptions(versions []subscription.Version) []ui.Option {
	var options []ui.Option
	for _, version := range versions {
		text := strconv.Itoa(version.Number)
		options = append(options, ui.Option{Value: text, Label: text + ": " + change(version)})
	}
	return options
}

// rate describes the rate limit.
func rate(perSecond int) string {
	return ui.If(perSecond == 0, "No limit",
		"At most "+ui.Plural(perSecond, "request", "requests")+" a second")
}

// meanings say when each kind is sent and what it is useful for.
var meanings = map[lending.EventKind]string{
	lending.EventStatusUpdated: "The application moved to another status, such as Approved or " +
		"Declined. Carries the approved offer, if there is one.",
	lending.EventAmountUpdated: "The approved amount was changed after the approval. Carries the " +
		"offer before and after.",
	lending.EventOfferUpdated: "Rate, term or fee changed after the hard credit pull. Carries the " +
		"offer before and after.",
	lending.EventDocumentSent:   "The loan documents went out to be signed.",
	lending.EventDocumentSigned: "The borrower has signed every document that was asked for.",
	lending.EventFundingChanged: "Money for a draw was requested, and once more when it is being " +
		"processed.",
	lending.EventFundingSettled: "The money of a draw has been transferred.",
	lending.EventFundingCancelled: "A draw was cancelled before its money was transferred. Sent " +
		"only to subscriptions that chose it by name.",
	lending.EventFundingReturned: "The money of a settled draw came back. Sent only to " +
		"subscriptions that chose it by name.",
	lending.EventTaskCreated: "Somebody has to do something for the application. Carries a title.",
	lending.EventTaskUpdated: "A task was completed or cancelled. Carries its title.",
}
