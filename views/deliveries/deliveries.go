// Package deliveries renders the delivery log, the page of a delivery, and
// what is done to deliveries.
package deliveries

import (
	"cmp"

	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/views/ui"
)

// Table lists deliveries, with rows to select.
func Table(rows []delivery.Delivery) ui.TableProps[delivery.Delivery] {
	table := ui.DeliveryTable(rows)
	table.Columns = append([]ui.Column[delivery.Delivery]{
		{Title: "Select", Class: "w-pick", Cell: pickCell},
	}, table.Columns...)
	return table
}

// ErrorClassWord names an error class for people.
func ErrorClassWord(class sender.ErrorClass) string {
	answered := map[sender.ErrorClass]string{
		sender.ClassHTTP3xx: "Redirected (3xx)", sender.ClassHTTP4xx: "Refused (4xx)",
		sender.ClassHTTP5xx: "Server error (5xx)",
	}
	return cmp.Or(answered[class], ui.OutcomeWord(0, class))
}

// CancelForm asks whether to cancel deliveries.
type CancelForm struct {
	Chosen []delivery.Delivery
	// Waiting is how many of them still wait for an attempt, Endpoints how many
	// endpoints those go to.
	Waiting, Endpoints int
	// Filter is that of the list that they were chosen from, Back its address.
	Filter, Back string
	// Reason and Error return what was typed, with what is wrong about it.
	Reason, Error string
}
