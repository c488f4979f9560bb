package operations

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/alert"
	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/processes"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/health"
	"drawbridge/views/applications"
	"drawbridge/views/operations"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

const (
	// overviewAlerts is how many alerts the overview lists.
	overviewAlerts = 6
	// overviewTimeout bounds the queries of the overview.
	overviewTimeout = 5 * time.Second
	// overviewPause is how many polls a stream of the overview skips: its numbers change
	// slowly and cost more than a list.
	overviewPause = 5
)

// overview shows how Drawbridge performed over a period.
func (f *Feature) overview(ctx echo.Context) error {
	request := ctx.Request().Context()
	chosen, values := f.readSpan(ctx)
	body := operations.OverviewProps{
		Ranges: chosen.tabs(), Since: values.Local("since"), Until: values.Local("until"),
		Wrong: values.Wrong,
	}
	status := http.StatusOK
	numbers, err := f.numbers(request, chosen)
	switch {
	case err != nil && (request.Err() != nil || page.IsFragment(ctx)):
		return err // keep the shown numbers and try again
	case err != nil:
		// The console must open even if the numbers cannot be read.
		slog.ErrorContext(request, "summing up the overview", "error", err)
		body.Unavailable = true
	case len(values.Wrong) > 0:
		status = http.StatusBadRequest
	}
	if page.IsFragment(ctx) {
		return page.Render(ctx, status, operations.OverviewRegion(numbers))
	}
	place := page.Place{Section: ui.SectionOverview, Title: "Overview"}
	body.Numbers = numbers
	if chosen.live && !body.Unavailable {
		place.Live = true
		body.StreamURL = paths.With(paths.HomeLive, chosen.query)
		body.PollURL = paths.With(paths.Home, chosen.query)
	}
	return f.Show(ctx, status, place, operations.Overview(body))
}

// overviewLive streams the numbers of the overview.
func (f *Feature) overviewLive(ctx echo.Context) error {
	var kept []byte
	looks := 0
	return f.Stream(ctx, func(request context.Context) ([]byte, error) {
		looks++
		if kept != nil && looks%overviewPause != 0 {
			return kept, nil
		}
		chosen, _ := f.readSpan(ctx)
		numbers, err := f.numbers(request, chosen)
		if err != nil {
			return nil, err
		}
		kept, err = page.HTML(request, operations.OverviewRegion(numbers))
		return kept, err
	})
}

func (f *Feature) numbers(ctx context.Context, chosen span) (operations.Numbers, error) {
	ctx, cancel := context.WithTimeout(ctx, overviewTimeout)
	defer cancel()
	numbers := operations.Numbers{Span: chosen.label, At: f.DB.Now()}
	steps, err := f.Webhooks.Health.Traffic(ctx, chosen.since, chosen.until, chosen.step)
	if err != nil {
		return numbers, err
	}
	// For a week ago, only whole hours are kept.
	before, err := f.Webhooks.Health.Traffic(ctx, chosen.since.Add(-week), chosen.until.Add(-week),
		time.Hour)
	if err != nil {
		return numbers, err
	}
	backlog, err := f.Webhooks.Health.Backlog(ctx)
	if err != nil {
		return numbers, err
	}
	activity, err := f.Processes.Activity(ctx, chosen.since, chosen.until)
	if err != nil {
		return numbers, err
	}
	open := alert.Filter{State: alert.Waiting}
	numbers.Alerts, _, err = f.Alerts.List(ctx, open, postgres.Paging{Limit: overviewAlerts})
	if err != nil {
		return numbers, err
	}
	waiting, err := f.Alerts.Count(ctx, open, operations.MaxCount)
	if err != nil {
		return numbers, err
	}
	numbers.Outcomes, numbers.Latency = plots(steps, chosen)
	numbers.Splits = chosen.splits()
	if chosen.by != "" {
		parts, err := f.Webhooks.Health.Failures(ctx, chosen.since, chosen.until, chosen.hours().step,
			chosen.by)
		if err != nil {
			return numbers, err
		}
		numbers.Outcomes = failurePlot(parts, chosen.hours())
	}
	delivered, err := f.delivered(ctx, chosen, sumOf(steps), sumOf(before))
	if err != nil {
		return numbers, err
	}
	numbers.Figures = figures(steps, before, chosen, delivered)
	numbers.Begun = begun(activity, chosen)
	numbers.Now, err = f.tiles(ctx, chosen, backlog, activity, waiting)
	return numbers, err
}

// begun counts the applications and draws of the period, by state, with links to their lists.
func begun(activity processes.Activity, chosen span) []operations.Begun {
	return []operations.Begun{
		{
			Kind: "application", Title: "Applications made", Counts: activity.Applications,
			Word: func(state string) string { return state },
			List: func(state string) string { return chosen.list(paths.Applications, "status", state) },
		},
		{
			Kind: "draw", Title: "Draws requested", Counts: activity.Draws,
			Word: func(state string) string { return applications.DrawWord(lending.FundingStatus(state)) },
			List: func(state string) string { return chosen.list(paths.Desk, "state", state) },
		},
	}
}

// week is the age of the period that figures are compared with.
const week = 7 * 24 * time.Hour

func sumOf(steps []health.TrafficStep) health.Counts {
	var sum health.Counts
	for _, step := range steps {
		sum.Add(step.Counts)
	}
	return sum
}

// rateOf formats the share of finished deliveries that were delivered. It is rounded down,
// so that 100 % means all of them.
func rateOf(of health.Counts) string {
	finished := of.Delivered + of.Failed
	if finished == 0 {
		return "–"
	}
	tenths := of.Delivered * 1000 / finished
	return strings.TrimSuffix(fmt.Sprintf("%d.%d", tenths/10, tenths%10), ".0") + " %"
}

// slowestOf formats the time within which 95 of 100 attempts were answered.
func slowestOf(of health.Counts) string {
	if of.Latency.Count() == 0 {
		return "–"
	}
	return ui.Duration(of.Latency.Percentile(0.95))
}

// delivered counts the deliveries created in the period, and in the period a week before,
// that were delivered, like the list that the number links to. Where the list would stop
// counting, the number comes from the summaries, which go by when deliveries ended.
func (f *Feature) delivered(
	ctx context.Context, chosen span, sum, was health.Counts,
) (counts [2]int, err error) {
	now := chosen.filter(delivery.StateDelivered)
	then := now
	then.Since, then.Until = now.Since.Add(-week), chosen.until.Add(-week)
	summed := [...]int{sum.Delivered, was.Delivered}
	for i, filter := range []delivery.Filter{now, then} {
		counts[i], err = f.Webhooks.Deliveries.Count(ctx, filter, operations.MaxCount)
		if err != nil {
			return counts, err
		}
		if counts[i] == operations.MaxCount {
			counts[i] = max(counts[i], summed[i])
		}
	}
	return counts, nil
}

// figures returns the three headlines of the chosen period, each compared with the week
// before. counts has the delivered deliveries of the period and of the week before.
func figures(steps, before []health.TrafficStep, chosen span, counts [2]int) []operations.Figure {
	sum, was := sumOf(steps), sumOf(before)
	against := func(value string) string {
		if value == "–" || value == "0" {
			return "nothing a week before"
		}
		return value + " a week before"
	}
	rate := operations.Figure{Tile: ui.Tile{
		Label: "Success rate", Value: rateOf(sum), Note: against(rateOf(was)), Icon: "circle-check",
		Tone: ui.Good, Href: chosen.deliveries(""),
	}}
	delivered := operations.Figure{Tile: ui.Tile{
		Label: "Delivered", Value: ui.Number(counts[0]), Note: against(ui.Number(counts[1])),
		Icon: "send", Tone: ui.Good, Href: chosen.deliveries(delivery.StateDelivered),
	}}
	slow := operations.Figure{Tile: ui.Tile{
		Label: "95 % answered within", Value: slowestOf(sum), Note: against(slowestOf(was)),
		Icon: "clock", Tone: ui.Mute, Href: chosen.deliveries(delivery.StateDelivered),
	}}
	// Sum adjacent steps, so that a sparkline can show them.
	for group := range slices.Chunk(steps, max(1, (len(steps)+sparkBars-1)/sparkBars)) {
		part := sumOf(group)
		rate.Spark.Points = append(rate.Spark.Points,
			ui.SparkPoint{Good: part.Delivered, Bad: part.Failed})
		delivered.Spark.Points = append(delivered.Spark.Points, ui.SparkPoint{Good: part.Delivered})
		slow.Spark.Points = append(slow.Spark.Points,
			ui.SparkPoint{Good: int(part.Latency.Percentile(0.95).Milliseconds())})
	}
	found := []operations.Figure{rate, delivered, slow}
	for i := range found {
		found[i].Spark.Title = found[i].Label + ", course over the " + chosen.label
	}
	return found
}

// sparkBars is the maximum number of bars of a sparkline.
const sparkBars = 30

// tiles returns the current numbers. The first one counts the deliveries that were created
// in the chosen period, failed, and were not made good, like its list.
func (f *Feature) tiles(
	ctx context.Context, chosen span, backlog health.Backlog, activity processes.Activity, waiting int,
) ([]ui.Tile, error) {
	filter := chosen.filter(delivery.StateFailed)
	filter.Open = true
	failed, err := f.Webhooks.Deliveries.Count(ctx, filter, operations.MaxCount)
	if err != nil {
		return nil, err
	}
	oldest := "nothing is due"
	if backlog.OldestDue != nil {
		oldest = "oldest due " + ui.Duration(
			max(f.DB.Now().Sub(*backlog.OldestDue), 0).Round(time.Second)) + " ago"
	}
	return []ui.Tile{
		alarm(ui.Tile{
			Label: "Failed", Note: "created in the " + chosen.label, Icon: "circle-x",
			Href: chosen.deliveries(delivery.StateFailed) + "&open=yes",
		}, failed),
		{
			Label: "Waiting", Value: operations.UpTo(backlog.Waiting), Note: oldest, Icon: "clock",
			Tone: ui.Calm,
			Href: paths.Where(paths.Deliveries, "state", ui.WaitingDeliveries),
		},
		{
			Label: "Jobs queued", Value: operations.UpTo(activity.JobsWaiting), Note: "of all queues",
			Icon: "list-checks", Tone: ui.Calm, Href: paths.Queues,
		},
		alarm(ui.Tile{
			Label: "Failing", Note: "subscriptions now", Icon: "webhook",
			Href: paths.Subscriptions + "?state=failing",
		}, backlog.Failing),
		alarm(ui.Tile{
			Label: "Needs attention", Note: "open alerts", Icon: "triangle-alert",
			Href: paths.Alerts,
		}, waiting),
		alarm(ui.Tile{
			Label: "E-mails failed", Icon: "mail",
			Note: ui.Plural(activity.MailsQueued, "more waits", "more wait"),
			Href: chosen.list(paths.Emails, "state", string(email.StateFailed)) + "&open=yes",
		}, activity.MailsFailed),
	}, nil
}

// alarm sets a number that should be zero.
func alarm(tile ui.Tile, count int) ui.Tile {
	tile.Value, tile.Tone = operations.UpTo(count), ui.Bad
	if count == 0 {
		tile.Tone = ui.Mute
	}
	return tile
}

// plots returns the outcomes of deliveries and the response times, step by step.
func plots(
	steps []health.TrafficStep, chosen span,
) (outcomes ui.BarPlotProps, latency ui.LinePlotProps) {
	outcomes = ui.BarPlotProps{
		ID: "outcomes", Title: "Deliveries per " + chosen.stepName(), Step: "From",
		Unit:   "deliveries",
		Series: []ui.Series{{Name: "Failed", Tone: ui.Bad}, {Name: "Delivered", Tone: ui.Good}},
	}
	latency = ui.LinePlotProps{
		ID: "latency", Title: "Time to answer per " + chosen.stepName(), Step: "From",
		Empty: "No answer in this time",
		Series: []ui.Series{
			{Name: "Median", Tone: ui.Good},
			{Name: "95 % within", Tone: ui.Calm},
			{Name: "99 % within", Tone: ui.Odd},
		},
	}
	for _, step := range steps {
		outcomes.Bars = append(outcomes.Bars, ui.Bar{
			Start: step.Start, Values: []int{step.Failed, step.Delivered},
		})
		bar := ui.Bar{Start: step.Start}
		for _, share := range []float64{0.5, 0.95, 0.99} {
			took := step.Latency.Percentile(share)
			bar.Values = append(bar.Values, int((took+time.Millisecond-1)/time.Millisecond))
		}
		latency.Bars = append(latency.Bars, bar)
	}
	return outcomes, latency
}

// partTones are the colours of the parts of a plot; the last one is for all others.
var partTones = []ui.Tone{ui.Bad, ui.Warn, ui.Odd, ui.Calm, ui.Mute}

// failurePlot plots the failed attempts by endpoint or by error.
func failurePlot(parts []health.FailurePart, chosen span) ui.BarPlotProps {
	plot := ui.BarPlotProps{
		ID: "outcomes", Title: "Failed attempts per " + chosen.stepName() + " by " + string(chosen.by),
		Step: "From", Unit: "attempts",
	}
	start, step := chosen.since.UTC().Truncate(chosen.step), chosen.step
	for ; start.Before(chosen.until); start = start.Add(step) {
		plot.Bars = append(plot.Bars, ui.Bar{Start: start, Values: make([]int, len(parts))})
	}
	for i, part := range parts {
		name := "All others"
		switch {
		case part.Endpoint.URL != "":
			name = part.Endpoint.Label()
		case part.Class != "":
			name = ui.OutcomeWord(part.Status, string(part.Class))
		}
		plot.Series = append(plot.Series, ui.Series{Name: name, Tone: partTones[i]})
		for step, count := range part.Steps {
			plot.Bars[step].Values[i] = count
		}
	}
	return plot
}
