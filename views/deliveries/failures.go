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

// MaxFailures is up to how many failures of an endpoint are counted.
const MaxFailures = 10_000

// Failures is what fails at one endpoint.
type Failures struct {
	Subscription subscription.Subscription
	// Groups split all that failed and was not made good.
	Groups []delivery.FailureGroup
	// Filter is what the page is about: all of it, or one kind.
	Filter delivery.Filter
	// FailingSince is nil while the last attempt succeeded.
	FailingSince *time.Time
	// Move is how the subscription got its URL, the zero one if it always had it.
	Move subscription.Move
	// Sample is the newest that failed, Good the newest that arrived; nil without one.
	Sample, Good *delivery.Detail
}

// count sums up the groups that the page is about.
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

// narrowed tells that the page is about one kind of failure.
func (p Failures) narrowed() bool { return p.Filter.ErrorClass != "" || p.Filter.HTTPStatus != 0 }

// since is when the first failure that the page is about happened.
func (p Failures) since() time.Time {
	var oldest time.Time
	for _, group := range p.Groups {
		if p.isAbout(group) && (oldest.IsZero() || group.First.Before(oldest)) {
			oldest = group.First
		}
	}
	return oldest
}

// Failures up to the most that are counted.
func countWord(count int) string {
	return ui.If(count >= MaxFailures, ui.Number(MaxFailures)+"+", ui.Number(count))
}

// query is the filter of the page in the list of deliveries.
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

// FailuresHref is the page about what fails at a subscription.
func (p Failures) href(group delivery.FailureGroup) string {
	pairs := []string{"error", string(group.Class)}
	if group.Status != 0 {
		pairs = append(pairs, "code", strconv.Itoa(group.Status))
	}
	return paths.Where(paths.To(paths.Failures, p.Subscription.UID.String()), pairs...)
}

// forPartner is the text that support sends to the partner about all of it.
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

// lastAttempt is how the last attempt of a delivery went, with an id of its own on the page;
// none before the first.
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
