// Package deliveries renders the delivery log, the page of a delivery, and
// what is done to deliveries.
package deliveries

import (
	"drawbridge/internal/webhook"
	"drawbridge/views/ui"
)

// Table lists deliveries, with rows to select.
func Table(rows []webhook.Delivery) ui.TableProps[webhook.Delivery] {
	table := ui.DeliveryTable(rows)
	table.Columns = append([]ui.Column[webhook.Delivery]{
		{Title: "Select", Class: "w-pick", Cell: pickCell},
	}, table.Columns...)
	return table
}

// ErrorClassWord names an error class for people.
func ErrorClassWord(class webhook.ErrorClass) string {
	switch class {
	case webhook.ClassHTTP3xx:
		return "Redirected (3xx)"
	case webhook.ClassHTTP4xx:
		return "Refused (4xx)"
	case webhook.ClassHTTP5xx:
		return "Server error (5xx)"
	}
	return ui.OutcomeWord(0, string(class))
}

// CancelForm asks whether to cancel deliveries.
type CancelForm struct {
	Chosen []webhook.Delivery
	// Waiting is how many of them still wait for an attempt, Endpoints how many
	// endpoints those go to.
	Waiting, Endpoints int
	// Filter is that of the list that they were chosen from, Back its address.
	Filter, Back string
	// Reason and Fault return what was typed, with what is wrong about it.
	Reason, Fault string
}
