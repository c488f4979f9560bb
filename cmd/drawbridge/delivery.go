package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

type deliveryCmd struct {
	List   deliveryListCmd   `cmd:"" help:"List deliveries, newest first."`
	Show   deliveryShowCmd   `cmd:"" help:"Show one delivery with its attempts."`
	Resend deliveryResendCmd `cmd:"" help:"Send deliveries again: each becomes a new delivery of the same event."`
}

// deliveryFlags are the filters of the log.
type deliveryFlags struct {
	Subscription string `help:"Only this subscription's." placeholder:"UID"`
	State        string `help:"pending, retrying, delivered, failed or cancelled." placeholder:"STATE"`
	Event        string `help:"Only this event kind." placeholder:"KIND"`
	Application  string `help:"Only this application's." placeholder:"UID"`
	Since        string `help:"Created at or after, such as 2026-11-21T09:30:00Z." placeholder:"TIME"`
	Until        string `help:"Created before." placeholder:"TIME"`
}

func (f deliveryFlags) isZero() bool { return f == deliveryFlags{} }

func (f deliveryFlags) filter() (filter webhook.DeliveryFilter, err error) {
	if filter.SubscriptionUID, err = optionalUID("--subscription", f.Subscription); err != nil {
		return filter, err
	}
	if filter.ApplicationUID, err = optionalUID("--application", f.Application); err != nil {
		return filter, err
	}
	filter.State = webhook.DeliveryState(f.State)
	if f.State != "" && !slices.Contains(webhook.DeliveryStates(), filter.State) {
		return filter, usagef(
			"--state is %q; it must be pending, retrying, delivered, failed or cancelled", f.State)
	}
	filter.Event = lending.EventKind(f.Event)
	if f.Event != "" && !filter.Event.IsKnown() {
		return filter, usagef("--event is %q, which is not an event kind", f.Event)
	}
	if filter.Since, err = parseTime("--since", f.Since); err != nil {
		return filter, err
	}
	filter.Until, err = parseTime("--until", f.Until)
	return filter, err
}

// deliveryJSON is a delivery as commands print it.
type deliveryJSON struct {
	UID          uuid.UUID             `json:"delivery_uid"`
	Subscription uuid.UUID             `json:"subscription_uid"`
	Event        lending.EventKind     `json:"event"`
	Application  uuid.UUID             `json:"application_id"`
	Status       string                `json:"status"`
	Timestamp    string                `json:"timestamp"`
	State        webhook.DeliveryState `json:"state"`
	AttemptCount int                   `json:"attempt_count"`
	ResendOf     *uuid.UUID            `json:"resend_of"`
	Test         bool                  `json:"test"`
	CreatedAt    time.Time             `json:"created_at"`
}

func newDeliveryJSON(d webhook.Delivery) deliveryJSON {
	return deliveryJSON{
		UID: d.UID, Subscription: d.SubscriptionUID, Event: d.Event, Application: d.ApplicationUID,
		Status: d.Status, Timestamp: lending.FormatTimestamp(d.EventAt), State: d.State,
		AttemptCount: d.AttemptCount, ResendOf: d.ResendOf, Test: d.Test,
		CreatedAt: d.CreatedAt.UTC(),
	}
}

// detailJSON is a delivery with its attempts.
type detailJSON struct {
	deliveryJSON
	Body string `json:"body"`
	// BodyRemovedAt is when retention removed the body.
	BodyRemovedAt *time.Time    `json:"body_removed_at"`
	URL           string        `json:"url"`
	Attempts      []attemptJSON `json:"attempts"`
}

type attemptJSON struct {
	Number          int              `json:"number"`
	StartedAt       time.Time        `json:"started_at"`
	DurationMS      float64          `json:"duration_ms"`
	HTTPStatus      *int             `json:"http_status"`
	ErrorClass      *string          `json:"error_class"`
	Error           *string          `json:"error"`
	Note            *string          `json:"note"`
	Address         *string          `json:"address"`
	RequestHeaders  []webhook.Header `json:"request_headers"`
	ResponseHeaders []webhook.Header `json:"response_headers"`
	ResponseBody    string           `json:"response_body"`

	Protocol           *string    `json:"protocol"`
	Reused             *bool      `json:"connection_reused"`
	TLSVersion         *string    `json:"tls_version"`
	CertificateExpires *time.Time `json:"certificate_expires"`
	ContentRemovedAt   *time.Time `json:"content_removed_at"`
}

func newAttemptJSON(a webhook.AttemptRecord) attemptJSON {
	class := string(a.ErrorClass)
	printed := attemptJSON{
		Number: a.Number, StartedAt: a.StartedAt.UTC(),
		DurationMS: float64(a.Duration.Microseconds()) / 1000,
		HTTPStatus: orNull(a.HTTPStatus), ErrorClass: orNull(class), Error: orNull(a.Error),
		Note: orNull(a.Note), Address: orNull(a.Address), RequestHeaders: a.RequestHeaders,
		ResponseHeaders: a.ResponseHeaders, ResponseBody: string(a.ResponseBody),
		Protocol: orNull(a.Protocol), Reused: a.Reused, TLSVersion: orNull(a.TLSVersion),
		CertificateExpires: utc(a.CertificateExpires), ContentRemovedAt: utc(a.ContentRemovedAt),
	}
	if printed.RequestHeaders == nil {
		printed.RequestHeaders = []webhook.Header{}
	}
	if printed.ResponseHeaders == nil {
		printed.ResponseHeaders = []webhook.Header{}
	}
	return printed
}

// utc is the moment as documents write it; nil stays nil.
func utc(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	moment := at.UTC()
	return &moment
}

func orNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

type deliveryListCmd struct {
	deliveryFlags
	listFlags
}

// Run lists deliveries.
func (cmd deliveryListCmd) Run(env *environment) error {
	filter, err := cmd.filter()
	if err != nil {
		return err
	}
	if filter.Limit, filter.Cursor, err = cmd.page(); err != nil {
		return err
	}
	return env.withServices(func(s *app.Services) error {
		page, err := s.Webhooks.Deliveries(env.ctx, filter)
		if err != nil {
			return err
		}
		return listing[webhook.Delivery, deliveryJSON]{
			"deliveries", page.Deliveries, newDeliveryJSON, printDelivery,
		}.printPage(env, cmd.JSON, page.Next)
	})
}

func printDelivery(w io.Writer, d webhook.Delivery) {
	fmt.Fprintf(w, "%s  %s  %-9s %d/3  %-36s %s\n", d.UID,
		d.CreatedAt.UTC().Format(time.RFC3339), d.State, d.AttemptCount, d.Event, d.URL)
}

type deliveryShowCmd struct {
	UID  string `arg:"" help:"Delivery."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Run shows one delivery.
func (cmd deliveryShowCmd) Run(env *environment) error {
	uid, err := parseUID("the delivery", cmd.UID)
	if err != nil {
		return err
	}
	return env.withServices(func(s *app.Services) error {
		detail, err := s.Webhooks.Delivery(env.ctx, uid)
		if err != nil {
			return err
		}
		printed := detailJSON{
			deliveryJSON: newDeliveryJSON(detail.Delivery),
			Body:         string(detail.Body), URL: detail.URL, Attempts: []attemptJSON{},
			BodyRemovedAt: utc(detail.BodyRemovedAt),
		}
		for _, attempt := range detail.Attempts {
			printed.Attempts = append(printed.Attempts, newAttemptJSON(attempt))
		}
		return env.print(cmd.JSON, printed, func(w io.Writer) { printDetail(w, detail) })
	})
}

func printDetail(w io.Writer, detail webhook.DeliveryDetail) {
	body := string(detail.Body)
	if detail.BodyRemovedAt != nil {
		body = "removed by retention on " + detail.BodyRemovedAt.UTC().Format(time.DateOnly)
	}
	fmt.Fprintf(w, "delivery %s (%s)\n  event  %s\n  to     %s\n  body   %s\n",
		detail.UID, detail.State, detail.Event, detail.URL, body)
	for _, attempt := range detail.Attempts {
		outcome := fmt.Sprintf("HTTP %d", attempt.HTTPStatus)
		if attempt.ErrorClass != "" {
			outcome = fmt.Sprintf("%s: %s", attempt.ErrorClass, attempt.Error)
		}
		fmt.Fprintf(w, "  attempt %d  %s  %s  %s\n", attempt.Number,
			attempt.StartedAt.UTC().Format(time.RFC3339), attempt.Duration, outcome)
	}
}

type deliveryResendCmd struct {
	UIDs []string `arg:"" optional:"" name:"uid" help:"Deliveries to send again."`
	deliveryFlags
	Reason string `help:"Why, for the record." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print one JSON document."`
}

// Run re-sends the named deliveries, or those that the filters choose.
func (cmd deliveryResendCmd) Run(env *environment) error {
	filter, err := cmd.filter()
	if err != nil {
		return err
	}
	uids, err := parseUIDs("the delivery", cmd.UIDs)
	if err != nil {
		return err
	}
	if len(uids) == 0 && cmd.isZero() {
		return usagef("name the deliveries to re-send, or choose them with " +
			"--subscription, --state, --since and --until")
	}
	if len(uids) > 0 && !cmd.isZero() {
		return usagef("name deliveries or choose them with flags, not both")
	}
	return env.change(func(s *app.Services, tx *postgres.Tx) (func() error, error) {
		var resent []uuid.UUID
		var err error
		if len(uids) > 0 {
			resent, err = s.Webhooks.Resend(env.ctx, tx, uids, cliActor, cmd.Reason)
		} else {
			resent, err = s.Webhooks.ResendMatching(env.ctx, tx, filter, cliActor, cmd.Reason)
		}
		if err != nil {
			return nil, err
		}
		err = env.auditResend(s, tx, cmd, resent)
		return func() error {
			if resent == nil {
				resent = []uuid.UUID{}
			}
			return env.print(cmd.JSON, map[string]any{"resent": resent}, func(w io.Writer) {
				for _, uid := range resent {
					fmt.Fprintln(w, uid)
				}
			})
		}, err
	})
}
