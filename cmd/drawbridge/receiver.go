package main

import (
	"context"
	"crypto/hmac"
	"io"
	"net/http"
	"strings"

	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
)

// receiverPath is where a development server receives its own demo webhooks.
const receiverPath = "/sample-receiver"

// demoSigningSecret signs the deliveries to the sample receiver.
var demoSigningSecret = secret.New("whsec_published-demo-secret")

// sampleReceiver is a partner's endpoint for development: it accepts what is
// signed with the demo secret and refuses everything else.
func sampleReceiver(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	expected := webhook.Sign(demoSigningSecret, body)
	if !hmac.Equal([]byte(expected), []byte(r.Header.Get("x-hmac-signature"))) {
		http.Error(w, "the signature does not match", http.StatusUnauthorized)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// ensureDemoSubscription lets the first demo partner receive every event at the
// sample receiver of this server, whatever port it has this time.
func ensureDemoSubscription(ctx context.Context, s *services, data demoJSON) error {
	url := s.settings.PublicURL + receiverPath
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
			if strings.HasSuffix(subscription.URL, receiverPath) {
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
