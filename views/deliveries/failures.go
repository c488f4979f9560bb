package deliveries

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// MaxFailures is the highest count of an endpoint's failures.
const MaxFailures = 10_000

// Failures are the failed deliveries of one endpoint.
type Failures struct {
	Subscription subscription.Subscription
	// Groups are all failures that were not made good, by kind.
	Groups []delivery.FailureGroup
	// Filter selects the failures that the page shows: all of them, or one kind.
	Filter delivery.Filter
	// FailingSince is nil if the last attempt succeeded.
	FailingSince *time.Time
	// Move is how the subscription got its URL, the zero value if it always had it.
	Move subscription.Move
	// Sample is the newest failed delivery, Good the newest successful one; nil if there is none.
	Sample, Good *delivery.Detail
}

// count adds up the groups that the page shows.
func (p Failures) count() int {
	count := 0
	for _, group := range p.Groups {
		if p.isAbout(group) {
			count += group.Count
		}
	}
	return count
}

func (p Failures) isAbout(group delivery.FailureGroup) bool {
	return (p.Filter.ErrorClass == "" || p.Filter.ErrorClass == group.Class) &&
		(p.Filter.HTTPStatus == 0 || p.Filter.HTTPStatus == group.Status)
}

// narrowed reports whether the page shows one kind of failure.
func (p Failures) narrowed() bool { return p.Filter.ErrorClass != "" || p.Filter.HTTPStatus != 0 }

// since is the time of the first failure that the page shows.
func (p Failures) since() time.Time {
	var oldest time.Time
	for _, group := range p.Groups {
		if p.isAbout(group) && (oldest.IsZero() || group.First.Before(oldest)) {
			oldest = group.First
		}
	}
	return oldest
}

// countWord formats a count of failures, up to MaxFailures.
func countWord(count int) string {
	return ui.If(count >= MaxFailures, ui.Number(MaxFailures)+"+", ui.Number(count))
}

// query is the page's filter in the list of deliveries.
func (p Failures) query() url.Values {
	query := url.Values{
		"subscription": {p.Subscription.UID.String()}, "state": {string(delivery.StateFailed)},
		"open": {"yes"}, "test": {"no"},
	}
	if p.Filter.ErrorClass != "" {
		query.Set("error", string(p.Filter.ErrorClass))
	}
	if p.Filter.HTTPStatus != 0 {
		query.Set("code", strconv.Itoa(p.Filter.HTTPStatus))
	}
	return query
}

// href is the page with only the failures of a group.
func (p Failures) href(group delivery.FailureGroup) string {
	pairs := []string{"error", string(group.Class)}
	if group.Status != 0 {
		pairs = append(pairs, "code", strconv.Itoa(group.Status))
	}
	return paths.Where(paths.To(paths.Failures, p.Subscription.UID.String()), pairs...)
}

// forPartner returns the text about these failures that support sends to the partner.
func (p Failures) forPartner() string {
	var text strings.Builder
	to, moved := p.Subscription.URL, p.Move.At.After(p.since())
	if moved {
		to = "your endpoint"
	}
	fmt.Fprintf(&text, "%s webhooks to %s have used up their attempts since %s.\n",
		countWord(p.count()), to, p.since().UTC().Format(time.RFC3339))
	if moved {
		fmt.Fprintf(&text, "Its URL is %s since %s; what was sent before went to another one.\n",
			p.Subscription.URL, p.Move.At.UTC().Format(time.RFC3339))
	}
	for _, group := range p.Groups {
		if p.isAbout(group) {
			fmt.Fprintf(&text, "- %s: %s, the last at %s\n",
				ui.OutcomeWord(group.Status, group.Class), ui.Number(group.Count),
				group.Last.UTC().Format(time.RFC3339))
		}
	}
	if p.Good != nil && p.Good.FinishedAt != nil {
		fmt.Fprintf(&text, "The last one that was accepted: delivery %s at %s\n", p.Good.UID,
			p.Good.FinishedAt.UTC().Format(time.RFC3339))
	}
	if p.Sample != nil {
		text.WriteString("\nThe newest of them:\n" + forPartner(*p.Sample))
	}
	return text.String()
}

// lastAttempt returns the last attempt of a delivery, with an id that is unique on the
// page; empty if there is none.
func lastAttempt(of *delivery.Detail, id string) []ui.AttemptView {
	if of == nil || len(of.Attempts) == 0 {
		return nil
	}
	attempts := ui.AttemptsOf(of.Attempts)[len(of.Attempts)-1:]
	attempts[0].Of, attempts[0].Expanded = id, true
	return attempts
}

func groupTable(p Failures) ui.TableProps[delivery.FailureGroup] {
	return ui.TableProps[delivery.FailureGroup]{
		Caption: "Deliveries that failed and were not made good, by how the last attempt ended",
		RowID: func(g delivery.FailureGroup) string {
			return fmt.Sprintf("group-%s-%d", g.Class, g.Status)
		},
		Rows: p.Groups,
		Columns: []ui.Column[delivery.FailureGroup]{
			{Title: "How it ended", Header: true, Cell: func(g delivery.FailureGroup) templ.Component {
				return groupCell(p, g)
			}},
			ui.Texts("Deliveries", "w-short end",
				func(g delivery.FailureGroup) string { return countWord(g.Count) }).Titled(),
			ui.Times("First", "col-b w-time end",
				func(g delivery.FailureGroup) time.Time { return g.First }).Titled(),
			ui.Times("Last", "w-time end",
				func(g delivery.FailureGroup) time.Time { return g.Last }).Titled(),
		},
	}
}
