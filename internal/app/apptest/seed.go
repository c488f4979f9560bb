package apptest

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/catalog"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// Caller is the world's merchant.
func (h *Harness) Caller() loan.Caller {
	return loan.Caller{MerchantUID: h.Merchant, Name: "client-1"}
}

// Operator reaches everything.
func Operator() loan.Caller { return loan.Caller{Name: "operator"} }

// NewPartner adds a partner.
func (h *Harness) NewPartner(t testing.TB, name string) uuid.UUID {
	t.Helper()
	var made partner.Partner
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, err = h.Partners.CreatePartner(ctx, tx, name, "")
		return err
	})
	return made.UID
}

// NewMerchant adds a merchant to a partner.
func (h *Harness) NewMerchant(t testing.TB, partnerUID uuid.UUID, name string) uuid.UUID {
	t.Helper()
	var made partner.Merchant
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, err = h.Partners.CreateMerchant(ctx, tx, partnerUID, name)
		return err
	})
	return made.UID
}

// Subscribe adds a subscription of the world's partner that gets every event.
// change, which may be nil, adapts its settings.
func (h *Harness) Subscribe(
	t testing.TB, change func(*subscription.Settings),
) subscription.Subscription {
	t.Helper()
	settings := subscription.Settings{
		URL:    "https://hooks.example.com/drawbridge",
		Auth:   sender.AuthHMAC,
		Events: []string{subscription.AllEvents},
	}
	if change != nil {
		change(&settings)
	}
	var made subscription.Subscription
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, _, err = h.Webhooks.Subscriptions.Subscribe(ctx, tx, h.Partner, settings, "operator")
		return err
	})
	return made
}

// NewProduct adds a product that lends from 1,000 to 100,000 and pays out by
// the schedule, such as "40,40,20", less a fee of 3.75 %.
func (h *Harness) NewProduct(t testing.TB, code, schedule string) lending.Product {
	t.Helper()
	return h.AddProduct(t, catalog.NewProduct{Code: code, Schedule: schedule})
}

// AddProduct adds a product; what is empty gets the values of NewProduct.
func (h *Harness) AddProduct(t testing.TB, request catalog.NewProduct) lending.Product {
	t.Helper()
	fill := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	fill(&request.Name, "Product "+request.Code)
	fill(&request.Term, "120")
	fill(&request.Rate, "7.99")
	fill(&request.Fee, "3.75")
	fill(&request.Schedule, "40,40,20")
	fill(&request.Min, "1000")
	fill(&request.Max, "100000")
	var made catalog.Product
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, err = h.Catalog.Create(ctx, tx, request)
		return err
	})
	return made.Product
}

// NewUser adds a user of the console, who signs in with Password.
func (h *Harness) NewUser(t testing.TB, address string, role operator.Role) {
	t.Helper()
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Operators.Create(ctx, tx, operator.NewUser{
			Email: address, Name: "Sam Ortega", Role: role, Password: Password,
		})
		return err
	})
}
