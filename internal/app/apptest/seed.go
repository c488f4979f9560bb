package apptest

import (
	"cmp"
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

// Caller is the harness's merchant.
func (h *Harness) Caller() loan.Caller {
	return loan.Caller{MerchantUID: h.Merchant, Name: "client-1"}
}

// Operator is a caller without restrictions.
func Operator() loan.Caller { return loan.Caller{Name: "operator"} }

// NewPartner adds a partner.
func (h *Harness) NewPartner(t testing.TB, name string) uuid.UUID {
	t.Helper()
	return do(t, h, func(ctx context.Context, tx *postgres.Tx) (partner.Partner, error) {
		return h.Partners.CreatePartner(ctx, tx, name, "")
	}).UID
}

// NewMerchant adds a merchant to a partner.
func (h *Harness) NewMerchant(t testing.TB, partnerUID uuid.UUID, name string) uuid.UUID {
	t.Helper()
	return do(t, h, func(ctx context.Context, tx *postgres.Tx) (partner.Merchant, error) {
		return h.Partners.CreateMerchant(ctx, tx, partnerUID, name)
	}).UID
}

// Subscribe adds a subscription of the harness's partner to every event. change, which may be nil,
// modifies its settings.
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
	return do(t, h, func(ctx context.Context, tx *postgres.Tx) (subscription.Subscription, error) {
		made, _, err := h.Webhooks.Subscriptions.Subscribe(ctx, tx, h.Partner, settings, "operator")
		return made, err
	})
}

// NewProduct adds a product that lends from 1,000 to 100,000 and pays out by
// the schedule, such as "40,40,20", less a fee of 3.75 %.
func (h *Harness) NewProduct(t testing.TB, code, schedule string) lending.Product {
	t.Helper()
	return h.AddProduct(t, catalog.NewProduct{Code: code, Schedule: schedule})
}

// AddProduct adds a product; empty fields get the values of NewProduct.
func (h *Harness) AddProduct(t testing.TB, request catalog.NewProduct) lending.Product {
	t.Helper()
	request.Name = cmp.Or(request.Name, "Product "+request.Code)
	request.Term, request.Rate = cmp.Or(request.Term, "120"), cmp.Or(request.Rate, "7.99")
	request.Fee = cmp.Or(request.Fee, "3.75")
	request.Schedule = cmp.Or(request.Schedule, "40,40,20")
	request.Min, request.Max = cmp.Or(request.Min, "1000"), cmp.Or(request.Max, "100000")
	return do(t, h, func(ctx context.Context, tx *postgres.Tx) (catalog.Product, error) {
		return h.Catalog.Create(ctx, tx, request)
	}).Product
}

// NewUser adds a console user, who signs in with Password.
func (h *Harness) NewUser(t testing.TB, address string, role operator.Role) {
	t.Helper()
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Operators.Create(ctx, tx, operator.NewUser{
			Email: address, Name: "Sam Ortega", Role: role, Password: Password,
		})
		return err
	})
}
