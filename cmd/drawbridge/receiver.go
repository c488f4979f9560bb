package main

import (
	"context"
	"strings"

	"drawbridge/internal/config"
	"drawbridge/internal/postgres"
	"drawbridge/internal/receiver"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
	"drawbridge/web/console"
)

// demoSigningSecret signs the deliveries to the sample receiver.
var demoSigningSecret = secret.New("whsec_published-demo-secret")

// newReceiver returns a development server's sample receiver, which knows the
// demo secret; nil in production.
func newReceiver(settings config.Config, db *postgres.DB) *receiver.Receiver {
	if settings.Env != config.Development {
		return nil
	}
	return receiver.New(db.Now, demoSigningSecret)
}

// startReceiver opens the sample receiver's listener with a wrong certificate,
// and returns what closes it.
func startReceiver(s *services) (stop func() error, err error) {
	if s.receiver == nil {
		return func() error { return nil }, nil
	}
	return s.receiver.ServeWrongCertificate()
}

// development is what the console of a development server has besides; nil in
// production.
func development(s *services) *console.Development {
	if s.receiver == nil {
		return nil
	}
	return &console.Development{Receiver: s.receiver, Sends: s.settings.SMTPURL != ""}
}

// ensureDemoSubscription lets the first demo partner receive every event at the
// sample receiver of this server, whatever port it has this time.
func ensureDemoSubscription(ctx context.Context, s *services, data demoJSON) error {
	url := s.settings.PublicURL + receiver.Path
	partnerUID := data.Partners[0].UID
	subscriptions, _, err := s.webhooks.Subscriptions(ctx,
		webhook.SubscriptionFilter{PartnerUID: partnerUID, Limit: webhook.MaxPage})
	if err != nil {
		return err
	}
	return s.db.InTx(ctx, func(tx *postgres.Tx) error {
		for _, subscription := range subscriptions {
			if subscription.URL == url {
				return nil
			}
			if strings.HasSuffix(subscription.URL, receiver.Path) {
				_, _, err := s.webhooks.Amend(ctx, tx, subscription.UID, webhook.Patch{URL: &url}, "demo")
				return err
			}
		}
		_, _, err := s.webhooks.Subscribe(ctx, tx, partnerUID, webhook.Settings{
			URL: url, Auth: webhook.AuthHMAC, Secret: demoSigningSecret,
			Events: []string{webhook.AllEvents},
		}, "demo")
		return err
	})
}
