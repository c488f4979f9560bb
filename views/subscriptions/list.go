// Package subscriptions renders the list of subscriptions, the page of one, and its forms.
package subscriptions

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"drawbridge/internal/webhook/health"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/ui"
)

// The tabs of a subscription's page, as named in the address.
const (
	TabActivity      = "activity"
	TabConfiguration = "configuration"
	TabSecret        = "secret"
	TabHealth        = "health"
	TabVersions      = "versions"
)

// Tabs are all tabs; the first one is the default.
var Tabs = []string{TabActivity, TabConfiguration, TabSecret, TabHealth, TabVersions}

// AuthWord is an authentication scheme in words.
func AuthWord(auth sender.Auth) string {
	switch auth {
	case sender.AuthHMAC:
		return "HMAC"
	case sender.AuthBearer:
		return "Bearer"
	case sender.AuthNone:
	}
	return "None"
}

// Listed is a subscription with its health of the last 24 hours.
type Listed struct {
	subscription.Summary
	Health health.Health
}

// Table lists subscriptions.
func Table(rows []Listed) ui.TableProps[Listed] {
	return ui.TableProps[Listed]{
		Caption: "Subscriptions, newest first",
		RowID:   func(r Listed) string { return "s-" + r.UID.String() },
		Rows:    rows,
		Columns: []ui.Column[Listed]{
			ui.Chips("State", "w-state",
				func(r Listed) ui.ChipProps { return ui.SubscriptionChip(r.State) }),
			{Title: "Endpoint", Header: true, Cell: endpointCell},
			ui.Texts("Partner", "col-b w-place", func(r Listed) string { return r.PartnerName }),
			{Title: "Events", Class: "col-b w-id", Cell: eventsCell},
			{Title: "Success, 24 hours", Class: "col-a w-spark", Cell: sparkCell},
			ui.Texts("95 % within", "col-c col-d w-rate end", func(r Listed) string {
				if took := r.Health.P95(); took != 0 {
					return ui.Duration(took)
				}
				return ""
			}),
			ui.Times("Last success", "col-b w-time end",
				func(r Listed) time.Time { return ui.Value(r.Health.LastSuccess) }).Titled(),
			{Title: "Action", Class: "col-a w-count end", Cell: actionCell},
		},
	}
}

// successRate is the share of successful attempts, or a word if there are none.
func successRate(h health.Health) string {
	rate, known := h.SuccessRate()
	if !known {
		return "no traffic"
	}
	return fmt.Sprintf("%.1f %%", 100*rate)
}

// sparkHours is how many hours one step of a sparkline covers.
const sparkHours = 2

// sparkline is the small plot of attempts over time.
func sparkline(h health.Health) ui.SparklineProps {
	var props ui.SparklineProps
	for hours := range slices.Chunk(h.Hours, sparkHours) {
		var point ui.SparkPoint
		for _, hour := range hours {
			point.Good += hour.Succeeded
			point.Bad += hour.Attempts - hour.Succeeded
		}
		props.Points = append(props.Points, point)
	}
	return props
}

// successWords gives the share of successful attempts and the number of attempts.
func successWords(h health.Health) string {
	return ui.If(h.Attempts == 0, successRate(h), successRate(h)+" of "+ui.Number(h.Attempts))
}

// called is the name of a subscription in its row, or its endpoint.
func called(r Listed) string { return ui.Visible(cmp.Or(r.SubscriptionName, r.Where())) }
