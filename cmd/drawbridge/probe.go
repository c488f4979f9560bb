package main

import (
	"fmt"
	"io"
	"time"

	"drawbridge/internal/app"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

type subscriptionProbeCmd struct {
	UID  string `arg:"" help:"Subscription." placeholder:"UID"`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Help says what a probe does and what it does not.
func (subscriptionProbeCmd) Help() string {
	return "Looks up the name, connects, checks the certificate, and makes one HEAD request with\n" +
		"the header x-drawbridge-probe: true. It sends no event, no custom header and no secret."
}

// probeJSON is a probe as commands print it.
type probeJSON struct {
	Subscription string  `json:"subscription_uid"`
	Name         *string `json:"name"`
	URL          string  `json:"url"`
	At           string  `json:"probed_at"`
	// ErrorClass and Error are null when the endpoint can be reached.
	ErrorClass *sender.ErrorClass `json:"error_class"`
	Error      *string            `json:"error"`
	Address    string             `json:"address"`
	HTTPStatus int                `json:"http_status"`
	Location   string             `json:"location"`
	Protocol   string             `json:"protocol"`
	TLSVersion string             `json:"tls_version"`
	Issuer     string             `json:"certificate_issuer"`
	// Expires is null without a certificate.
	Expires    *string `json:"certificate_expires"`
	DurationMS int64   `json:"duration_ms"`
}

// Run probes one endpoint and keeps what it finds.
func (cmd subscriptionProbeCmd) Run(env *environment) error {
	uid := env.uid("UID", cmd.UID)
	return env.show(cmd.JSON, func(s *app.Services) (output, error) {
		record, err := s.Webhooks.Health.ProbeNow(env.ctx, uid)
		var probed subscription.Subscription
		if err == nil {
			probed, err = s.Webhooks.Subscriptions.Get(env.ctx, uid)
		}
		if err == nil {
			err = s.Alerts.NoteProbe(env.ctx, record)
		}
		printed := probeJSON{
			Subscription: record.Subscription.String(), Name: orNull(probed.Name), URL: record.URL,
			At: record.At.UTC().Format(time.RFC3339), HTTPStatus: record.Status,
			Location: record.Location, Protocol: record.Protocol, TLSVersion: record.TLSVersion,
			Issuer: record.Issuer, DurationMS: record.Timings.Total.Milliseconds(),
		}
		if record.Class != "" {
			printed.ErrorClass, printed.Error = &record.Class, &record.Error
		}
		if record.Address.IsValid() {
			printed.Address = record.Address.String()
		}
		if !record.Expires.IsZero() {
			printed.Expires = new(record.Expires.UTC().Format(time.RFC3339))
		}
		return output{printed, func(w io.Writer) {
			fmt.Fprintf(w, "%s\n  %s\n", probed.Label(), record.Finding())
			if record.Class == "" {
				fmt.Fprintf(w, "  answered HEAD with %d in %d ms over %s %s\n", printed.HTTPStatus,
					printed.DurationMS, printed.Protocol, printed.TLSVersion)
			}
		}}, err
	})
}

type subscriptionTestCmd struct {
	UID   string `arg:"" help:"Subscription."`
	Event string `default:"application.status.update" help:"Event kind of the sample." placeholder:"KIND"`
	JSON  bool   `name:"json" help:"Print one JSON document."`
}

// Run sends a test event.
func (cmd subscriptionTestCmd) Run(env *environment) error {
	uid := env.uid("the subscription", cmd.UID)
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		delivery, err := s.Webhooks.Deliveries.Test(env.ctx, tx, uid, lending.EventKind(cmd.Event))
		return did(
			entry("subscription.test", uid.String(), "",
				map[string]any{"delivery_uid": delivery, "event": cmd.Event}),
			output{map[string]any{"delivery_uid": delivery}, func(w io.Writer) {
				fmt.Fprintf(w, "test delivery %s\n", delivery)
			}},
		), err
	})
}
