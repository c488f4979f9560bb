package demo

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/receiver"
	"drawbridge/internal/seed"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// History fills the pages of a first start with two weeks of made-up traffic, none of which is
// ever sent. It makes it once and completely, apart from the data set's own rows.
func History(ctx context.Context, db *postgres.DB) error {
	return withLoadLock(ctx, db, func() error {
		made, err := seed.Made(ctx, db)
		if err != nil || made {
			return err
		}
		_, err = seed.Fill(ctx, db, seed.Plan{
			Deliveries: 4000, Attempts: 4240, Partners: 9, Days: 14, Ended: true,
		})
		return err
	})
}

// Subscribe subscribes the first demo partner to every event at the sample receiver of this
// server, whatever port it has this time. A subscription that cannot move there, because
// somebody gave it credentials bound to its present origin, stays as it is: the note then says
// what to do, and is empty otherwise.
func Subscribe(ctx context.Context, s *app.Services, data Data) (note string, err error) {
	err = withLoadLock(ctx, s.DB, func() error {
		note, err = subscribe(ctx, s, data.Partners[0].UID)
		return err
	})
	return note, err
}

func subscribe(
	ctx context.Context, s *app.Services, partnerUID uuid.UUID,
) (note string, err error) {
	url := s.Settings.PublicURL + receiver.Path
	subscriptions, _, err := s.Webhooks.Subscriptions.List(ctx,
		subscription.Filter{PartnerUID: partnerUID}, postgres.Paging{Limit: postgres.MaxPage})
	if err != nil {
		return "", err
	}
	err = s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		for _, subscribed := range subscriptions {
			if subscribed.URL == url {
				return nil
			}
			if strings.HasSuffix(subscribed.URL, receiver.Path) {
				_, _, err := s.Webhooks.Subscriptions.Amend(ctx, tx, subscribed.UID,
					subscription.Patch{URL: &url}, "demo")
				if lending.ErrorCode(err) == lending.CodeInvalidState {
					note = fmt.Sprintf("subscription %s stays at %s: %v; give them again by drawbridge "+
						"subscription update, with --url %s", subscribed.UID, subscribed.URL, err, url)
					return nil
				}
				return err
			}
		}
		_, _, err := s.Webhooks.Subscriptions.Subscribe(ctx, tx, partnerUID, subscription.Settings{
			URL: url, Auth: sender.AuthHMAC, Secret: app.DemoSigningSecret,
			Events: []string{subscription.AllEvents},
		}, "demo")
		return err
	})
	return note, err
}
