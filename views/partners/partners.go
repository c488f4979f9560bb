// Package partners renders partners, merchants, clients, and the log of their requests.
package partners

import (
	"net/url"
	"time"

	"drawbridge/internal/application"

	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// PartnerRow is one partner in a list.
type PartnerRow struct {
	UID, Name                         string
	Merchants, Clients, Subscriptions int
	Created                           time.Time
}

// PartnerList is the page that lists partners.
type PartnerList struct {
	ui.Frame
	// Search is the beginning of a name, Fault what is wrong with the address.
	Search, Fault string
	Rows          []PartnerRow
	Summary       string
	// Newest and Older are neighbouring pages, empty where there is none.
	Newest, Older string
}

// TrafficView is how much was asked in a span of time.
type TrafficView struct {
	// Span is "last 24 hours".
	Span                      string
	Requests, Refused, Failed int64
}

// MerchantRow is one merchant in a list.
type MerchantRow struct {
	UID, Name string
	Created   time.Time
}

// ClientRow is one client in a list, and on its own page.
type ClientRow struct {
	ID    string
	Group bool
	// Merchants are the names of those that it acts for.
	Merchants []string
	// Hint and PreviousHint are the ends of its secrets, empty when unknown.
	Hint, PreviousHint string
	// PreviousUntil is when the previous secret stops; zero without one in force.
	PreviousUntil time.Time
	LastUsed      time.Time
	Revoked       time.Time
	Created       time.Time
	Rate, Burst   int
}

// ClientChip describes whether a client works.
func ClientChip(c ClientRow) ui.ChipProps {
	switch {
	case !c.Revoked.IsZero():
		return ui.ChipProps{Icon: "ban", Word: "Revoked", Tone: ui.Mute}
	case !c.PreviousUntil.IsZero():
		return ui.ChipProps{Icon: "refresh-cw", Word: "Rotating", Tone: ui.Warn}
	}
	return ui.ChipProps{Icon: "circle-check", Word: "Active", Tone: ui.Good}
}

func (c ClientRow) kind() string {
	if c.Group {
		return "group"
	}
	return "plain"
}

// secretEnd shows the end of a secret.
func secretEnd(hint string) string {
	if hint == "" {
		return "last characters not recorded"
	}
	return "ends in " + hint
}

// PartnerPage is the page of one partner.
type PartnerPage struct {
	ui.Frame
	UID, Name string
	Created   time.Time
	Traffic   []TrafficView
	Merchants []MerchantRow
	// MoreMerchants and MoreClients tell that there are more than are shown.
	MoreMerchants, MoreClients bool
	Clients                    []ClientRow
	Subscriptions              []SubscriptionLine
}

// SubscriptionLine is a subscription on the page of its partner.
type SubscriptionLine struct {
	UID, URL, State string
	// Events are the chosen kinds, or just "all".
	Events []string
}

// href is the subscription's own page.
func (l SubscriptionLine) href() string { return paths.Subscriptions + "/" + url.PathEscape(l.UID) }

func (l SubscriptionLine) events() string { return ui.EventsWord(l.Events) }

func subscriptionLines(rows []SubscriptionLine) ui.TableProps[SubscriptionLine] {
	return ui.TableProps[SubscriptionLine]{
		Caption: "Subscriptions of the partner, newest first",
		RowID:   func(l SubscriptionLine) string { return "s-" + l.UID },
		Href:    SubscriptionLine.href,
		Rows:    rows,
		Columns: []ui.Column[SubscriptionLine]{
			{Title: "State", Class: "w-state", Cell: lineStateCell},
			{Title: "Endpoint", Header: true, Cell: lineEndpointCell},
			{Title: "Events", Class: "col-a w-third", Cell: lineEventsCell},
		},
	}
}

// MerchantPage is the page of one merchant.
type MerchantPage struct {
	ui.Frame
	UID, Name               string
	PartnerUID, PartnerName string
	Created                 time.Time
	Traffic                 []TrafficView
	Clients                 []ClientRow
	Applications            []application.Summary
}

// ClientPage is the page of one client.
type ClientPage struct {
	ui.Frame
	Client                  ClientRow
	PartnerUID, PartnerName string
	Merchants               []MerchantRow
	Traffic                 []TrafficView
}

func partnerTable(rows []PartnerRow) ui.TableProps[PartnerRow] {
	return ui.TableProps[PartnerRow]{
		Caption: "Partners, newest first",
		RowID:   func(r PartnerRow) string { return "p-" + r.UID },
		Href:    func(r PartnerRow) string { return paths.To(paths.Partner, r.UID) },
		Rows:    rows,
		Columns: []ui.Column[PartnerRow]{
			{Title: "Name", Header: true, Cell: partnerNameCell},
			{Title: "Merchants", Class: "col-a w-count end", Cell: partnerMerchantsCell},
			{Title: "Clients", Class: "col-b w-count end", Cell: partnerClientsCell},
			{Title: "Subscriptions", Class: "col-b w-count end", Cell: partnerSubscriptionsCell},
			{Title: "Created", Class: "w-time w-day end", Cell: partnerCreatedCell},
		},
	}
}

func merchantTable(rows []MerchantRow) ui.TableProps[MerchantRow] {
	return ui.TableProps[MerchantRow]{
		Caption: "Merchants, newest first",
		RowID:   func(r MerchantRow) string { return "m-" + r.UID },
		Href:    func(r MerchantRow) string { return paths.To(paths.Merchant, r.UID) },
		Rows:    rows,
		Columns: []ui.Column[MerchantRow]{
			{Title: "Name", Header: true, Cell: merchantNameCell},
			{Title: "Id", Class: "col-a w-third", Cell: merchantUIDCell},
			{Title: "Created", Class: "w-time end", Cell: merchantCreatedCell},
		},
	}
}

// actsForTable lists the merchants that a client acts for.
func actsForTable(rows []MerchantRow) ui.TableProps[MerchantRow] {
	table := merchantTable(rows)
	table.Caption, table.Columns = "Merchants that it acts for", table.Columns[:2]
	return table
}

func clientTable(rows []ClientRow) ui.TableProps[ClientRow] {
	return ui.TableProps[ClientRow]{
		Caption: "Clients, newest first",
		RowID:   func(r ClientRow) string { return "c-" + r.ID },
		Href:    func(r ClientRow) string { return paths.To(paths.Client, r.ID) },
		Rows:    rows,
		Columns: []ui.Column[ClientRow]{
			{Title: "State", Class: "w-state", Cell: clientStateCell},
			{Title: "Client id", Header: true, Cell: clientIDCell},
			{Title: "Secret", Class: "col-b w-place", Cell: clientSecretCell},
			{Title: "Acts for", Class: "col-b w-place", Cell: clientMerchantsCell},
			{Title: "Last used", Class: "col-a w-time end", Cell: clientUsedCell},
			{Title: "Created", Class: "w-time end", Cell: clientCreatedCell},
		},
	}
}
