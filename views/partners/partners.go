// Package partners renders partners, merchants, clients, and the log of their requests.
package partners

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/apilog"
	"drawbridge/internal/application"
	"drawbridge/internal/partner"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// Traffic counts the API requests of a period.
type Traffic struct {
	apilog.Traffic

	// Span names the period: "last 24 hours".
	Span string
}

// Client is a client as pages show it.
type Client struct {
	partner.Client

	// Names are the names of the merchants that it acts for, in the same order.
	Names []string
	// Rotating means that the previous secret still works.
	Rotating bool
}

func (c Client) chip() ui.ChipProps {
	switch {
	case c.RevokedAt != nil:
		return ui.ChipProps{Icon: "ban", Word: "Revoked", Tone: ui.Mute}
	case c.Rotating:
		return ui.ChipProps{Icon: "refresh-cw", Word: "Rotating", Tone: ui.Warn}
	}
	return ui.ChipProps{Icon: "circle-check", Word: "Active", Tone: ui.Good}
}

// secretEnd shows the end of a secret.
func secretEnd(hint string) string {
	return ui.If(hint == "", "last characters not recorded", "ends in "+hint)
}

// PartnerDetail is a partner with what belongs to it.
type PartnerDetail struct {
	partner.Partner

	Traffic   []Traffic
	Merchants []partner.Merchant
	Clients   []Client
	// MoreMerchants and MoreClients mean that there are more than are shown.
	MoreMerchants, MoreClients bool
	Subscriptions              []subscription.Subscription
	// Arrived means that an endpoint of the partner has accepted something, even a test.
	Arrived bool
}

// step is one of the steps to a partner's first webhook.
type step struct {
	title, text  string
	done         bool
	action, href string
}

// steps lists the steps to a partner's first webhook, each with the reader's possible action.
func (p PartnerDetail) steps(ctx context.Context) []step {
	steps := []step{
		{
			title: "A merchant", text: "The business that loans pay.", done: len(p.Merchants) > 0,
			action: "Add a merchant", href: path(paths.MerchantNew, p.UID),
		}, {
			title: "Credentials", text: "What the partner's software calls the API with.",
			done: len(p.Clients) > 0, action: "Issue credentials",
			href: path(paths.ClientNew, p.UID),
		}, {
			title: "A subscription", text: "Where its events go, and how they are signed.",
			done: len(p.Subscriptions) > 0, action: "Create a subscription",
			href: paths.Where(paths.SubscriptionNew, "partner", p.UID.String()),
		}, {
			title: "A test that arrived", text: "The endpoint has confirmed an event or a test.",
			done: p.Arrived, action: "Send a test",
		},
	}
	if len(p.Subscriptions) > 0 {
		steps[3].href = paths.To(paths.SubscriptionTest, p.Subscriptions[0].UID.String())
	}
	if len(p.Merchants) == 0 {
		steps[1].href = ""
	}
	for i, pattern := range []string{
		paths.MerchantNew, paths.ClientNew, paths.SubscriptionNew, paths.SubscriptionTest,
	} {
		if !ui.May(ctx, pattern) {
			steps[i].href = ""
		}
	}
	return steps
}

// left counts the remaining steps.
func left(steps []step) int {
	count := 0
	for _, step := range steps {
		if !step.done {
			count++
		}
	}
	return count
}

// MerchantDetail is a merchant with what belongs to it.
type MerchantDetail struct {
	partner.Merchant

	Owner        partner.Partner
	Traffic      []Traffic
	Clients      []Client
	Applications []application.Summary
}

// ClientDetail is a client with the merchants it acts for that are on this page; the pager
// links to the others.
type ClientDetail struct {
	Client

	Owner          partner.Partner
	Traffic        []Traffic
	MerchantsPager ui.PagerProps
	Acts           ClientActs
}

// merchants returns the merchants that the client acts for.
func (c ClientDetail) merchants() []partner.Merchant {
	var merchants []partner.Merchant
	for i, uid := range c.MerchantUIDs {
		merchants = append(merchants, partner.Merchant{UID: uid, Name: c.Names[i]})
	}
	return merchants
}

// Table lists partners.
func Table(rows []partner.Summary) ui.TableProps[partner.Summary] {
	count := func(of func(partner.Summary) int) func(partner.Summary) string {
		return func(s partner.Summary) string { return ui.Number(of(s)) }
	}
	return ui.TableProps[partner.Summary]{
		Caption: "Partners, newest first",
		RowID:   func(s partner.Summary) string { return "p-" + s.UID.String() },
		Rows:    rows,
		Columns: []ui.Column[partner.Summary]{
			{Title: "Name", Header: true, Cell: partnerNameCell},
			ui.Texts("Merchants", "col-a w-count end",
				count(func(s partner.Summary) int { return s.Merchants })).Titled(),
			ui.Texts("Clients", "col-b w-count end",
				count(func(s partner.Summary) int { return s.Clients })).Titled(),
			ui.Texts("Subscriptions", "col-b w-count end",
				count(func(s partner.Summary) int { return s.Subscriptions })).Titled(),
			ui.Times("Created", "w-time w-day end",
				func(s partner.Summary) time.Time { return s.CreatedAt }),
		},
	}
}

func merchantTable(rows []partner.Merchant) ui.TableProps[partner.Merchant] {
	return ui.TableProps[partner.Merchant]{
		Caption: "Merchants, newest first",
		RowID:   func(m partner.Merchant) string { return "m-" + m.UID.String() },
		Rows:    rows,
		Columns: []ui.Column[partner.Merchant]{
			{Title: "Name", Header: true, Cell: merchantNameCell},
			{Title: "Id", Class: "col-a w-third", Cell: merchantUIDCell},
			ui.Times("Created", "w-time end", func(m partner.Merchant) time.Time { return m.CreatedAt }),
		},
	}
}

// actsForTable lists the merchants that a client acts for.
func actsForTable(rows []partner.Merchant) ui.TableProps[partner.Merchant] {
	table := merchantTable(rows)
	table.Caption, table.Columns = "Merchants that it acts for", table.Columns[:2]
	return table
}

func clientTable(rows []Client) ui.TableProps[Client] {
	return ui.TableProps[Client]{
		Caption: "Clients, newest first",
		RowID:   func(c Client) string { return "c-" + c.ID },
		Rows:    rows,
		Columns: []ui.Column[Client]{
			{Title: "State", Class: "w-state", Chip: Client.chip},
			{Title: "Client id", Header: true, Cell: clientIDCell},
			{Title: "Secret", Class: "col-b w-place", Cell: clientSecretCell},
			ui.Texts("Acts for", "col-b w-place", func(c Client) string {
				if len(c.Names) == 1 {
					return c.Names[0]
				}
				return ui.Plural(len(c.Names), "merchant", "merchants")
			}),
			{Title: "Last used", Class: "col-a w-time end", Named: true, Cell: clientUsedCell},
			ui.Times("Created", "w-time end", func(c Client) time.Time { return c.CreatedAt }),
		},
	}
}

// SystemTable lists clients of the lender's own systems, in their state at the given time.
func SystemTable(rows []partner.Client, now time.Time) ui.TableProps[partner.Client] {
	return ui.TableProps[partner.Client]{
		Caption: "The lender's systems, newest first",
		RowID:   func(c partner.Client) string { return "c-" + c.ID },
		Rows:    rows,
		Columns: []ui.Column[partner.Client]{
			ui.Chips("State", "w-state", func(c partner.Client) ui.ChipProps {
				return Client{Client: c, Rotating: c.IsRotating(now)}.chip()
			}),
			{Title: "Name", Header: true, Cell: systemNameCell},
			{Title: "Scopes", Class: "w-place", Text: scopesOf},
			{Title: "Calls from", Class: "col-b w-place", Named: true, Text: networksOf},
			{Title: "Last used", Class: "col-a w-time end", Named: true, Cell: systemUsedCell},
			ui.Times("Created", "w-time end", func(c partner.Client) time.Time { return c.CreatedAt }),
		},
	}
}

// scopesOf lists the scopes of one of the lender's systems.
func scopesOf(c partner.Client) string { return strings.Join(texts(c.Scopes), ", ") }

// networksOf lists the networks that one of the lender's systems may call from.
func networksOf(c partner.Client) string {
	return ui.If(len(c.From) == 0, "anywhere", strings.Join(texts(c.From), ", "))
}

func texts[T any](values []T) []string {
	written := make([]string, 0, len(values))
	for _, value := range values {
		written = append(written, fmt.Sprint(value))
	}
	return written
}

// ClientActs are the patterns of a client's changes. They all need the same role.
type ClientActs struct{ Rotate, Rate, Revoke string }

func subscriptionTable(rows []subscription.Subscription) ui.TableProps[subscription.Subscription] {
	return ui.TableProps[subscription.Subscription]{
		Caption: "Subscriptions of the partner, newest first",
		RowID:   func(s subscription.Subscription) string { return "s-" + s.UID.String() },
		Rows:    rows,
		Columns: []ui.Column[subscription.Subscription]{
			ui.Chips("State", "w-state",
				func(s subscription.Subscription) ui.ChipProps { return ui.SubscriptionChip(s.State) }),
			{Title: "Endpoint", Header: true, Cell: endpointCell},
			ui.Texts("Events", "col-a w-third",
				func(s subscription.Subscription) string { return ui.EventsWord(s.Events) }),
		},
	}
}

func path(pattern string, uid uuid.UUID) string { return paths.To(pattern, uid.String()) }

// Secret is a client's secret, shown only once.
type Secret struct {
	// Intro says whose secret it is.
	Intro string
	// Facts are the other data that the partner needs, Value is the secret itself.
	Facts []Fact
	Value string
	// Check is a command with which the partner can test the secret.
	Check string
	// Back is the page to go on to.
	Back, BackLabel string
}

// Fact is a name and a value.
type Fact struct{ Name, Value string }
