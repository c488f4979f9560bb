package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// tenant is a partner with one merchant, credentials and a subscription.
type tenant struct {
	partner, merchant, subscription uuid.UUID
	client                          partner.Issued
}

// caller is the tenant's merchant as the services know it.
func (t tenant) caller() loan.Caller {
	return loan.Caller{MerchantUID: t.merchant, Name: t.client.ClientID}
}

// freeRate, a second, and freeBurst are what no measurement reaches.
const freeRate, freeBurst = 100_000, 200_000

// newTenant adds a partner whose rate no measurement reaches and whose every
// event goes, signed, to the endpoint at url.
func (h *house) newTenant(ctx context.Context, name, url string) (tenant, error) {
	var made tenant
	err := h.DB.InTx(ctx, func(tx *postgres.Tx) error {
		owner, err := h.Partners.CreatePartner(ctx, tx, name, "")
		if err != nil {
			return err
		}
		merchant, err := h.Partners.CreateMerchant(ctx, tx, owner.UID, name)
		if err != nil {
			return err
		}
		client, err := h.addClient(ctx, tx, owner.UID)
		if err != nil {
			return err
		}
		subscribed, _, err := h.Webhooks.Subscriptions.Subscribe(ctx, tx, owner.UID,
			subscription.Settings{
				URL: url, Auth: sender.AuthHMAC, Secret: signingSecret,
				Events: []string{subscription.AllEvents},
			}, "bench")
		made = tenant{owner.UID, merchant.UID, subscribed.UID, client}
		return err
	})
	if err != nil {
		return tenant{}, fmt.Errorf("adding tenant %s: %w", name, err)
	}
	return made, nil
}

// addClient gives a partner credentials whose rate no measurement reaches.
func (h *house) addClient(
	ctx context.Context, tx *postgres.Tx, owner uuid.UUID,
) (partner.Issued, error) {
	client, err := h.Partners.CreateClient(ctx, tx, partner.NewClient{PartnerUID: owner})
	if err != nil {
		return client, err
	}
	return client, h.Partners.SetRate(ctx, tx, client.ClientID, freeRate, freeBurst)
}

// stage is how far an application has come.
type stage int

const (
	// created waits for its decision.
	created stage = iota
	// offered waits for the borrower to accept.
	offered
	// opened is approved and has a loan from which nothing was drawn.
	opened
)

// newApplication takes a new application through the services to a stage. Past
// created there must be a product, and opened accepts it.
func (h *house) newApplication(
	ctx context.Context, t tenant, product uuid.UUID, to stage,
) (uuid.UUID, error) {
	var uid uuid.UUID
	income, applications := lending.Cents(96_000_00), h.Applications
	steps := []func(tx *postgres.Tx) error{
		func(tx *postgres.Tx) error {
			made, err := applications.Create(ctx, tx, application.NewApplication{
				Source: lending.SourcePartner, PartnerUID: t.partner, MerchantUID: t.merchant,
				RequestedAmount: lending.Cents(25_000_00),
				Borrower: application.Borrower{
					FirstName: "Bea", LastName: "Borrower", Email: "bea@borrower.example",
					AnnualIncome: &income,
				},
				Project: application.Project{Name: "New roof"},
			})
			uid = made.UID
			return err
		},
		func(tx *postgres.Tx) error {
			_, err := applications.RunDecision(ctx, tx, t.caller(), uid)
			return err
		},
		func(tx *postgres.Tx) error {
			err := applications.AcceptOffer(ctx, tx, t.caller(),
				application.Acceptance{ApplicationUID: uid, ProductUID: product})
			if err != nil {
				return err
			}
			_, err = applications.Move(ctx, tx, t.caller(), uid, lending.StatusApproved)
			return err
		},
	}
	for _, step := range steps[:to+1] {
		if err := h.DB.InTx(ctx, step); err != nil {
			return uuid.Nil, fmt.Errorf("preparing an application: %w", err)
		}
	}
	return uid, nil
}

// clone copies an application with its offers and its loan, if any, n times.
// Rows are copied whole, whatever columns they have, under new identifiers.
func (h *house) clone(ctx context.Context, original uuid.UUID, n int) ([]uuid.UUID, error) {
	uids := make([]uuid.UUID, n)
	for i := range uids {
		uids[i] = postgres.NewUID(h.DB.Now())
	}
	err := h.DB.InTx(ctx, func(tx *postgres.Tx) error {
		for _, table := range []string{"applications", "offers", "loans", "loan_stages"} {
			//nolint:unqueryvet // a copy has whatever columns its original has
			_, err := tx.ExecContext(ctx, `
				INSERT INTO `+table+`
				SELECT copy.*
				  FROM `+table+` AS original,
				       unnest($2::uuid[]) AS target (uid),
				       jsonb_populate_record(original,
				           jsonb_build_object('application_uid', target.uid)) AS copy
				 WHERE original.application_uid = $1`, original, pq.Array(uids))
			if err != nil {
				return fmt.Errorf("copying %s of application %s: %w", table, original, err)
			}
		}
		return nil
	})
	return uids, err
}
