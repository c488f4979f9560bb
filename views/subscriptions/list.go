// Package subscriptions renders the list of subscriptions, the page of one, and its forms.
package subscriptions

import (
	"fmt"
	"strings"
	"time"

	"drawbridge/internal/webhook/health"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// The tabs of a subscription's page, as the address names them.
const (
	TabActivity      = "activity"
	TabConfiguration = "configuration"
	TabSecret        = "secret"
	TabHealth        = "health"
	TabVersions      = "versions"
)

// Tabs are all of them, the first one for when none is named.
var Tabs = []string{TabActivity, TabConfiguration, TabSecret, TabHealth, TabVersions}

// AuthWord names an authentication scheme.
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

func (r Listed) merchants() string {
	if r.Merchants == 0 {
		return "all merchants"
	}
	return ui.Plural(r.Merchants, "merchant", "merchants")
}

// Table lists subscriptions.
func Table(rows []Listed) ui.TableProps[Listed] {
	return ui.TableProps[Listed]{
		Caption: "Subscriptions, newest first",
		RowID:   func(r Listed) string { return "s-" + r.UID.String() },
		Href:    func(r Listed) string { return paths.To(paths.Subscription, r.UID.String()) },
		Rows:    rows,
		Columns: []ui.Column[Listed]{
			{
				Title: "State", Class: "w-state",
				Chip: func(r Listed) ui.ChipProps { return ui.SubscriptionChip(string(r.State)) },
			},
			{Title: "Endpoint", Header: true, Cell: endpointCell},
			{
				Title: "Partner", Class: "col-b w-place",
				Text: func(r Listed) string { return r.PartnerName },
			},
			{Title: "Events", Class: "col-b w-loan", Cell: eventsCell},
			{Title: "Success, 24 hours", Class: "col-a w-spark", Cell: sparkCell},
			{
				Title: "95 % within", Class: "col-c w-rate end",
				Text: func(r Listed) string { return took(r.Health.P95()) },
			},
			{
				Title: "Last success", Class: "col-b w-time end",
				Time: func(r Listed) time.Time { return lastSuccess(r.Health) },
			},
			{Title: "Action", Class: "col-a w-id end", Cell: actionCell},
		},
	}
}

// took is a time to answer, empty for none.
func took(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return ui.Duration(d)
}

func lastSuccess(h health.Health) time.Time {
	if h.LastSuccess == nil {
		return time.Time{}
	}
	return *h.LastSuccess
}

// successRate is the share of attempts that succeeded, or a word where there is none.
func successRate(h health.Health, behind string) string {
	rate, known := h.SuccessRate()
	if !known {
		return "no traffic"
	}
	return fmt.Sprintf("%.1f %%", 100*rate) + behind
}

// sparkline is the small plot of the hours.
func sparkline(h health.Health) ui.SparklineProps {
	props, failed := ui.SparklineProps{Title: "No attempts in the last 24 hours"}, 0
	for _, hour := range h.Hours {
		bad := hour.Attempts - hour.Succeeded
		failed += bad
		props.Points = append(props.Points, ui.SparkPoint{Good: hour.Succeeded, Bad: bad})
	}
	if h.Attempts > 0 {
		props.Title = fmt.Sprintf("%s in the last 24 hours, %s failed",
			ui.Plural(h.Attempts, "attempt", "attempts"), ui.Number(failed))
	}
	return props
}

func eventsTitle(r Listed) string { return strings.Join(r.Events, ", ") + "; " + r.merchants() }
