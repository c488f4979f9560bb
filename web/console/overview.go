package console

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/webhook"
	"drawbridge/views"
)

// attentionRows is how many failed deliveries the overview lists.
const attentionRows = 8

// overview shows how the webhooks of the last day went.
func (c *Console) overview(ctx echo.Context) error {
	frame, err := c.frame(ctx, views.SectionOverview, "Overview", views.Crumb{Label: "Overview"})
	if err != nil {
		return err
	}
	request := ctx.Request().Context()
	since := c.DB.Now().UTC().Add(-recent).Truncate(time.Minute)
	page := views.Overview{Frame: frame, Span: "last 24 hours"}
	statistics, err := c.Webhooks.Statistics(request, since)
	if err != nil {
		// The numbers are a comfort: without them the console must still open.
		slog.ErrorContext(request, "summing up deliveries", "error", err)
		page.Unavailable = true
		return render(ctx, http.StatusOK, views.OverviewPage(page))
	}
	failed := webhook.DeliveryFilter{
		State: webhook.DeliveryFailed, Since: since, Limit: attentionRows,
	}
	attention, err := c.Webhooks.Deliveries(request, failed)
	if err != nil {
		return err
	}
	page.Tiles = tiles(statistics, since, c.DB.Now())
	page.Hours = views.BarPlotProps{
		ID: "hours", Title: "Deliveries per hour", Step: "Hour",
		Series: []views.Series{
			{Name: "Failed", Tone: views.Bad}, {Name: "Waiting", Tone: views.Warn},
			{Name: "Delivered", Tone: views.Good},
		},
		Bars: hourBars(statistics.Hours, c.DB.Now()),
	}
	page.Attention = deliveryRows(attention.Deliveries)
	page.AttentionHref = listSince(webhook.DeliveryFailed, since)
	return render(ctx, http.StatusOK, views.OverviewPage(page))
}

// listSince is the list that a number on the overview counts.
func listSince(state webhook.DeliveryState, since time.Time) string {
	return views.DeliveriesPath(url.Values{
		"state": {string(state)}, "since": {since.UTC().Format(time.RFC3339)},
	})
}

func tiles(s webhook.Statistics, since, now time.Time) []views.Tile {
	delivered, failed := s.Count(webhook.DeliveryDelivered), s.Count(webhook.DeliveryFailed)
	retrying, pending := s.Count(webhook.DeliveryRetrying), s.Count(webhook.DeliveryPending)
	finished := delivered + failed
	rate := views.Tile{
		Label: "Success rate", Value: "–", Note: "nothing finished yet",
		Icon: "circle-check", Tone: views.Good,
	}
	if finished > 0 {
		rate.Value = percent(delivered, finished)
		rate.Note = fmt.Sprintf("%d of %d finished", delivered, finished)
		rate.Href = listSince(webhook.DeliveryDelivered, since)
	}
	failedTile := tile("Failed", failed, "attempts used up", webhook.DeliveryFailed, since)
	if failed == 0 {
		failedTile.Tone = views.Mute
	}
	took := views.Tile{
		Label: "Time to answer", Value: "–", Note: "nothing delivered yet",
		Icon: "zap", Tone: views.Mute,
	}
	if delivered > 0 {
		took.Value = views.Duration(s.Median)
		took.Note = "median; 95 % within " + views.Duration(s.P95)
	}
	return []views.Tile{
		rate, failedTile,
		tile("Retrying", retrying, soon(s.NextRetry, now), webhook.DeliveryRetrying, since),
		tile("Pending", pending, waited(s.OldestPending, now), webhook.DeliveryPending, since),
		took,
	}
}

func tile(
	label string, count int, note string, state webhook.DeliveryState, since time.Time,
) views.Tile {
	chip := views.DeliveryChip(string(state))
	return views.Tile{
		Label: label, Value: views.Number(count), Note: note, Icon: chip.Icon, Tone: chip.Tone,
		Href: listSince(state, since),
	}
}

func soon(next *time.Time, now time.Time) string {
	if next == nil {
		return "none is due"
	}
	return "next in " + views.Duration(max(next.Sub(now), 0).Round(time.Second))
}

func waited(oldest *time.Time, now time.Time) string {
	if oldest == nil {
		return "nothing waits"
	}
	return "oldest waits " + views.Duration(max(now.Sub(*oldest), 0).Round(time.Second))
}

// percent rounds down, so that 100 % means all of them.
func percent(part, whole int) string {
	tenths := part * 1000 / whole
	if tenths%10 == 0 {
		return fmt.Sprintf("%d %%", tenths/10)
	}
	return fmt.Sprintf("%d.%d %%", tenths/10, tenths%10)
}

// hourBars returns one bar for each of the last hours, the current one last.
func hourBars(counts []webhook.HourCount, now time.Time) []views.Bar {
	hours := int(recent / time.Hour)
	first := now.UTC().Truncate(time.Hour).Add(-time.Duration(hours-1) * time.Hour)
	bars := make([]views.Bar, hours)
	for i := range bars {
		bars[i] = views.Bar{
			Start: first.Add(time.Duration(i) * time.Hour), Values: make([]int, 3),
		}
	}
	for _, count := range counts {
		at := int(count.Hour.Sub(first) / time.Hour)
		if count.Hour.Before(first) || at >= hours {
			continue
		}
		switch count.State {
		case webhook.DeliveryDelivered:
			bars[at].Values[2] += count.Count
		case webhook.DeliveryFailed:
			bars[at].Values[0] += count.Count
		case webhook.DeliveryPending, webhook.DeliveryRetrying:
			bars[at].Values[1] += count.Count
		case webhook.DeliveryCancelled: // neither sent nor failed
		}
	}
	return bars
}

// countSummary words the count of a list.
func countSummary(count int) string {
	switch {
	case count > maxCount:
		return views.Number(maxCount) + "+ deliveries"
	case count == 1:
		return "1 delivery"
	}
	return views.Number(count) + " deliveries"
}
