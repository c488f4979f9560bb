// Package deliveries renders the delivery log, the page of a delivery, and the forms that
// act on deliveries.
package deliveries

import (
	"cmp"

	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/views/ui"
)

// Table lists deliveries with checkboxes.
func Table(rows []delivery.Delivery) ui.TableProps[delivery.Delivery] {
	table := ui.DeliveryTable(rows)
	table.Columns = append([]ui.Column[delivery.Delivery]{
		{Title: "Select", Class: "w-pick", Cell: pickCell},
	}, table.Columns...)
	return table
}

// ErrorClassWord is an error class in words.
func ErrorClassWord(class sender.ErrorClass) string {
	answered := map[sender.ErrorClass]string{
		sender.ClassHTTP3xx: "Redirected (3xx)", sender.ClassHTTP4xx: "Refused (4xx)",
		sender.ClassHTTP5xx: "Server error (5xx)",
	}
	return cmp.Or(answered[class], ui.OutcomeWord(0, class))
}

// CancelForm asks for confirmation before cancelling deliveries.
type CancelForm struct {
	Chosen []delivery.Delivery
	// Waiting is how many of them still wait for an attempt, Endpoints the number of their
	// endpoints.
	Waiting, Endpoints int
	// Filter is the filter of the list that they were chosen from, Back its address.
	Filter, Back string
	// Reason and Error are the submitted reason and what is wrong with it.
	Reason, Error string
}
