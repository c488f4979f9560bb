package console

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/attention"
	"drawbridge/internal/fleet"
	"drawbridge/internal/webhook"
	"drawbridge/views/operations"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

const (
	// attentionRows is how many matters the overview lists.
	attentionRows = 6
	// overviewTimeout bounds what the overview may ask of the database.
	overviewTimeout = 5 * time.Second
	// overviewPause is how many looks for news a stream of the overview lets pass:
	// its numbers change slowly and cost more than a list.
	overviewPause = 5
)

// overview shows how Drawbridge does over a time.
func (c *Console) overview(ctx echo.Context) error {
	request, query := ctx.Request(), ctx.QueryParams()
	chosen := c.reader(ctx).readSpan(query)
	page := operations.Overview{
		Ranges: rangeTabs(chosen), Since: chosen.sinceLocal, Until: chosen.untilLocal,
		Faults: chosen.faults,
	}
	status := http.StatusOK
	numbers, err := c.overviewNumbers(request.Context(), chosen)
	switch {
	case err != nil && request.Context().Err() != nil:
		return err
	case err != nil:
		// The numbers are a comfort: without them the console must still open.
		slog.ErrorContext(request.Context(), "summing up the overview", "error", err)
		page.Unavailable = true
	case len(chosen.faults) > 0:
		status = http.StatusBadRequest
	}
	if isFragment(request) {
		return render(ctx, status, operations.OverviewRegion(numbers))
	}
	page.Frame, err = c.frame(ctx, ui.SectionOverview, "Overview", ui.Crumb{Label: "Overview"})
	if err != nil {
		return err
	}
	page.Numbers, page.Notice = numbers, c.takeNotice(ctx)
	if chosen.live && !page.Unavailable {
		page.Live = true
		page.StreamURL = paths.HomeLive + "?" + chosen.query.Encode()
		page.PollURL = paths.Home + "?" + chosen.query.Encode()
	}
	return render(ctx, status, operations.OverviewPage(page))
}

// overviewLive streams the numbers of the overview.
func (c *Console) overviewLive(ctx echo.Context) error {
	who, query := c.reader(ctx), ctx.QueryParams()
	var kept []byte
	looks := 0
	return c.stream(ctx, func(request context.Context) ([]byte, error) {
		looks++
		if kept != nil && looks%overviewPause != 0 {
			return kept, nil
		}
		who.now = c.DB.Now()
		numbers, err := c.overviewNumbers(request, who.readSpan(query))
		if err != nil {
			return nil, err
		}
		kept, err = renderHTML(request, operations.OverviewRegion(numbers))
		return kept, err
	})
}

func (c *Console) overviewNumbers(
	ctx context.Context, chosen span,
) (operations.OverviewNumbers, error) {
	ctx, cancel := context.WithTimeout(ctx, overviewTimeout)
	defer cancel()
	steps, err := c.Webhooks.Traffic(ctx, chosen.since, chosen.until, chosen.step)
	if err != nil {
		return operations.OverviewNumbers{}, err
	}
	backlog, err := c.Webhooks.Backlog(ctx)
	if err != nil {
		return operations.OverviewNumbers{}, err
	}
	activity, err := c.Fleet.Activity(ctx, chosen.since, chosen.until)
	if err != nil {
		return operations.OverviewNumbers{}, err
	}
	open := attention.Filter{State: attention.Waiting, Limit: attentionRows}
	items, _, err := c.Attention.List(ctx, open)
	if err != nil {
		return operations.OverviewNumbers{}, err
	}
	waiting, err := c.Attention.Count(ctx, open, maxBadge)
	if err != nil {
		return operations.OverviewNumbers{}, err
	}
	numbers := operations.OverviewNumbers{
		Span: chosen.label, Outcomes: outcomePlot(steps, chosen), Latency: latencyPlot(steps, chosen),
		Applications: applicationCounts(activity.Applications), Draws: drawCounts(activity.Draws),
	}
	for _, item := range items {
		numbers.Attention = append(numbers.Attention, attentionRow(item, c.DB.Now()))
	}
	numbers.Tiles = append(trafficTiles(steps, chosen),
		stateTiles(backlog, activity, waiting, c.DB.Now())...)
	return numbers, nil
}

// trafficTiles are the numbers of the time chosen.
func trafficTiles(steps []webhook.TrafficStep, chosen span) []ui.Tile {
	var sum webhook.Counts
	for _, step := range steps {
		sum.Add(step.Counts)
	}
	rate := ui.Tile{
		Label: "Success rate", Value: "–", Note: "nothing finished yet", Icon: "circle-check",
		Tone: ui.Good, Href: chosen.deliveries(""),
	}
	if finished := sum.Delivered + sum.Failed; finished > 0 {
		rate.Value = percent(sum.Delivered, finished)
		rate.Note = "of " + counted(finished, "delivery", "deliveries") + " that ended"
	}
	failed := ui.Tile{
		Label: "Failed", Value: ui.Number(sum.Failed), Note: "every attempt failed",
		Icon: "circle-x", Tone: ui.Bad, Href: chosen.deliveries(webhook.DeliveryFailed),
	}
	if sum.Failed == 0 {
		failed.Tone = ui.Mute
	}
	took := ui.Tile{
		Label: "Median answer", Value: "–", Note: "nothing delivered yet", Icon: "zap",
		Tone: ui.Mute, Href: chosen.deliveries(webhook.DeliveryDelivered),
	}
	slow := took
	slow.Label, slow.Icon = "95 % within", "clock"
	if sum.Latency.Count() > 0 {
		took.Value, took.Note = ui.Duration(sum.Latency.Percentile(0.5)), "half are faster"
		slow.Value = ui.Duration(sum.Latency.Percentile(0.95))
		slow.Note = "99 % within " + ui.Duration(sum.Latency.Percentile(0.99))
	}
	return []ui.Tile{
		rate, {
			Label: "Delivered", Value: ui.Number(sum.Delivered),
			Note: counted(sum.Attempts, "attempt", "attempts"), Icon: "send", Tone: ui.Good,
			Href: chosen.deliveries(webhook.DeliveryDelivered),
		}, failed, took, slow,
	}
}

// stateTiles are the numbers of this moment.
func stateTiles(
	backlog webhook.Backlog, activity fleet.Activity, waiting int, now time.Time,
) []ui.Tile {
	oldest := "nothing is due"
	if backlog.OldestDue != nil {
		oldest = "oldest due " + ui.Duration(
			max(now.Sub(*backlog.OldestDue), 0).Round(time.Second)) + " ago"
	}
	return []ui.Tile{
		{
			Label: "Waiting", Value: upTo(backlog.Waiting), Note: oldest, Icon: "clock",
			Tone: ui.Calm,
			Href: paths.With(paths.Deliveries, url.Values{"state": {string(webhook.DeliveryPending)}}),
		},
		{
			Label: "Jobs queued", Value: upTo(activity.JobsWaiting), Note: "of all queues",
			Icon: "list-checks", Tone: ui.Calm, Href: paths.Queues,
		},
		alarm(ui.Tile{
			Label: "Failing", Note: "subscriptions now", Icon: "webhook",
			Href: paths.Subscriptions + "?state=failing",
		}, backlog.Failing),
		alarm(ui.Tile{
			Label: "Needs attention", Note: "open matters", Icon: "triangle-alert",
			Href: paths.Attention,
		}, waiting),
		alarm(ui.Tile{
			Label: "E-mails failed", Icon: "mail",
			Note: counted(activity.MailsQueued, "more waits", "more wait"),
			Href: paths.With(paths.Emails, url.Values{"state": {"failed"}}),
		}, activity.MailsFailed),
	}
}

// alarm fills in a number that should be zero.
func alarm(tile ui.Tile, count int) ui.Tile {
	tile.Value, tile.Tone = upTo(count), ui.Bad
	if count == 0 {
		tile.Tone = ui.Mute
	}
	return tile
}

// upTo writes a count that goes up to ten thousand.
func upTo(count int) string {
	if count >= maxCount {
		return ui.Number(maxCount) + "+"
	}
	return ui.Number(count)
}

// percent rounds down, so that 100 % means all of them.
func percent(part, whole int) string {
	tenths := part * 1000 / whole
	if tenths%10 == 0 {
		return fmt.Sprintf("%d %%", tenths/10)
	}
	return fmt.Sprintf("%d.%d %%", tenths/10, tenths%10)
}

func outcomePlot(steps []webhook.TrafficStep, chosen span) ui.BarPlotProps {
	plot := ui.BarPlotProps{
		ID: "outcomes", Title: "Deliveries per " + chosen.stepName(), Step: "From",
		Series: []ui.Series{
			{Name: "Failed", Tone: ui.Bad},
			{Name: "Retried attempts", Tone: ui.Warn},
			{Name: "Delivered", Tone: ui.Good},
		},
	}
	for _, step := range steps {
		retried := max(step.Attempts-step.Succeeded-step.Failed, 0)
		plot.Bars = append(plot.Bars, ui.Bar{
			Start: step.Start, Values: []int{step.Failed, retried, step.Delivered},
		})
	}
	return plot
}

func latencyPlot(steps []webhook.TrafficStep, chosen span) ui.LinePlotProps {
	plot := ui.LinePlotProps{
		ID: "latency", Title: "Time to answer per " + chosen.stepName(), Step: "From",
		Empty: "No answer in this time",
		Series: []ui.Series{
			{Name: "Median", Tone: ui.Good},
			{Name: "95 % within", Tone: ui.Calm},
			{Name: "99 % within", Tone: ui.Odd},
		},
	}
	for _, step := range steps {
		bar := ui.Bar{Start: step.Start}
		for _, share := range []float64{0.5, 0.95, 0.99} {
			took := step.Latency.Percentile(share)
			bar.Values = append(bar.Values, int((took+time.Millisecond-1)/time.Millisecond))
		}
		plot.Bars = append(plot.Bars, bar)
	}
	return plot
}

func applicationCounts(counts []fleet.StateCount) []operations.CountRow {
	rows := make([]operations.CountRow, 0, len(counts))
	for i, count := range counts {
		rows = append(rows, operations.CountRow{
			ID: fmt.Sprintf("application-state-%d", i), State: count.State, Count: upTo(count.Count),
			Href: paths.With(paths.Applications, url.Values{"status": {count.State}}),
		})
	}
	return rows
}

// drawWords are what the states of draws are called.
var drawWords = map[string]string{
	"FUNDING_REQUESTED": "Requested", "FUNDING_PROCESSING": "Processing",
	"FUNDING_SETTLED": "Settled", "CANCELLED": "Cancelled",
}

func drawCounts(counts []fleet.StateCount) []operations.CountRow {
	rows := make([]operations.CountRow, 0, len(counts))
	for i, count := range counts {
		rows = append(rows, operations.CountRow{
			ID: fmt.Sprintf("draw-state-%d", i), State: drawWords[count.State],
			Count: upTo(count.Count), Href: paths.With(paths.Loans, url.Values{"draw": {count.State}}),
		})
	}
	return rows
}
