package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
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

func (f deliveryFlags) filter(env *environment) delivery.Filter {
	filter := delivery.Filter{
		SubscriptionUID: env.optionalUID("--subscription", f.Subscription),
		ApplicationUID:  env.optionalUID("--application", f.Application),
		State:           delivery.State(f.State),
	}
	if f.State != "" && !slices.Contains(delivery.States(), filter.State) {
		env.refusef(
			"--state is %q; it must be pending, retrying, delivered, failed or cancelled", f.State)
	}
	filter.Event = env.eventKind("--event", f.Event)
	filter.Since, filter.Until = env.time("--since", f.Since), env.time("--until", f.Until)
	return filter
}

// deliveryJSON is a delivery as commands print it.
type deliveryJSON struct {
	UID          uuid.UUID         `json:"delivery_uid"`
	Subscription uuid.UUID         `json:"subscription_uid"`
	Name         *string           `json:"name"`
	URL          string            `json:"url"`
	Event        lending.EventKind `json:"event"`
	Application  uuid.UUID         `json:"application_id"`
	Status       string            `json:"status"`
	Timestamp    string            `json:"timestamp"`
	State        delivery.State    `json:"state"`
	AttemptCount int               `json:"attempt_count"`
	ResendOf     *uuid.UUID        `json:"resend_of"`
	MadeGoodBy   *uuid.UUID        `json:"made_good_by"`
	Test         bool              `json:"test"`
	CreatedAt    time.Time         `json:"created_at"`
}

func newDeliveryJSON(d delivery.Delivery) deliveryJSON {
	return deliveryJSON{
		UID: d.UID, Subscription: d.SubscriptionUID, Name: orNull(d.SubscriptionName),
		URL: d.URL, Event: d.Event, Application: d.ApplicationUID, Status: d.Status,
		Timestamp: lending.FormatTimestamp(d.EventAt), State: d.State,
		AttemptCount: d.AttemptCount, ResendOf: d.ResendOf, MadeGoodBy: d.MadeGoodBy, Test: d.Test,
		CreatedAt: d.CreatedAt.UTC(),
	}
}

// detailJSON is a delivery with its attempts.
type detailJSON struct {
	deliveryJSON
	Body string `json:"body"`
	// BodyRemovedAt is when retention removed the body.
	BodyRemovedAt *time.Time    `json:"body_removed_at"`
	Attempts      []attemptJSON `json:"attempts"`
}

type attemptJSON struct {
	Number     int       `json:"number"`
	StartedAt  time.Time `json:"started_at"`
	DurationMS float64   `json:"duration_ms"`
	HTTPStatus *int      `json:"http_status"`
	ErrorClass *string   `json:"error_class"`
	Error      *string   `json:"error"`
	Note       *string   `json:"note"`
	// Fault is the fault that a sandbox injected into the attempt, null if there was none.
	Fault           *string         `json:"fault"`
	Address         *string         `json:"address"`
	RequestHeaders  []sender.Header `json:"request_headers"`
	ResponseHeaders []sender.Header `json:"response_headers"`
	ResponseBody    string          `json:"response_body"`

	Protocol           *string    `json:"protocol"`
	Reused             *bool      `json:"connection_reused"`
	TLSVersion         *string    `json:"tls_version"`
	CertificateExpires *time.Time `json:"certificate_expires"`
	ContentRemovedAt   *time.Time `json:"content_removed_at"`
}

type deliveryListCmd struct {
	deliveryFlags
	listFlags
}

// Run lists deliveries.
func (cmd deliveryListCmd) Run(env *environment) error {
	filter := cmd.filter(env)
	return rowsOf("deliveries", newDeliveryJSON,
		"DELIVERY\tCREATED\tSTATE\tATTEMPTS\tEVENT\tSUBSCRIPTION",
		func(w io.Writer, d delivery.Delivery) {
			fmt.Fprintf(w, "%s\t%s\t%s\t%d/3\t%s\t%s\n", d.UID,
				d.CreatedAt.UTC().Format(time.RFC3339), stateWord(d), d.AttemptCount, d.Event, d.Label())
		}).page(env, cmd.listFlags,
		func(s *app.Services, page postgres.Paging) ([]delivery.Delivery, postgres.Cursor, error) {
			return s.Webhooks.Deliveries.List(env.ctx, filter, page)
		})
}

// stateWord is the state of a delivery, or says that a failed one was made good by another.
func stateWord(d delivery.Delivery) string {
	if d.MadeGoodBy != nil {
		return "made good"
	}
	return string(d.State)
}

type deliveryShowCmd struct {
	UID  string `arg:"" help:"Delivery."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Run shows one delivery.
func (cmd deliveryShowCmd) Run(env *environment) error {
	uid := env.uid("the delivery", cmd.UID)
	return env.show(cmd.JSON, func(s *app.Services) (output, error) {
		detail, err := s.Webhooks.Deliveries.Get(env.ctx, uid)
		printed := detailJSON{
			deliveryJSON: newDeliveryJSON(detail.Delivery),
			Body:         string(detail.Body), Attempts: []attemptJSON{},
			BodyRemovedAt: utc(detail.BodyRemovedAt),
		}
		for _, a := range detail.Attempts {
			printed.Attempts = append(printed.Attempts, attemptJSON{
				Number: a.Number, StartedAt: a.StartedAt.UTC(),
				DurationMS: float64(a.Duration.Microseconds()) / 1000,
				HTTPStatus: orNull(a.HTTPStatus), ErrorClass: orNull(string(a.ErrorClass)),
				Error: orNull(a.Error), Note: orNull(a.Note), Fault: orNull(string(a.Fault)),
				Address:         orNull(a.Address),
				RequestHeaders:  append([]sender.Header{}, a.RequestHeaders...),
				ResponseHeaders: append([]sender.Header{}, a.ResponseHeaders...),
				ResponseBody:    string(a.ResponseBody),
				Protocol:        orNull(a.Protocol), Reused: a.Reused, TLSVersion: orNull(a.TLSVersion),
				CertificateExpires: utc(a.CertificateExpires), ContentRemovedAt: utc(a.ContentRemovedAt),
			})
		}
		return output{printed, func(w io.Writer) {
			body := string(detail.Body)
			if detail.BodyRemovedAt != nil {
				body = "removed by retention on " + detail.BodyRemovedAt.UTC().Format(time.DateOnly)
			}
			fmt.Fprintf(w, "delivery %s (%s)\n  event  %s\n  to     %s\n  body   %s\n",
				detail.UID, stateWord(detail.Delivery), detail.Event, detail.Label(), body)
			if detail.MadeGoodBy != nil {
				fmt.Fprintf(w, "  made good by %s\n", detail.MadeGoodBy)
			}
			for _, attempt := range detail.Attempts {
				outcome := fmt.Sprintf("HTTP %d", attempt.HTTPStatus)
				if attempt.ErrorClass != "" {
					outcome = fmt.Sprintf("%s: %s", attempt.ErrorClass, attempt.Error)
				}
				fmt.Fprintf(w, "  attempt %d  %s  %s  %s\n", attempt.Number,
					attempt.StartedAt.UTC().Format(time.RFC3339), attempt.Duration, outcome)
			}
		}}, err
	})
}

type deliveryResendCmd struct {
	UIDs []string `arg:"" optional:"" name:"uid" help:"Deliveries to send again."`
	deliveryFlags
	Reason string `help:"Why, for the record." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print one JSON document."`
}

// Help says which deliveries the flags leave out.
func (deliveryResendCmd) Help() string {
	return "The flags skip deliveries that are waiting to be sent anyway and, with --state failed, " +
		"those made good, whose event arrived with another delivery. Of several that match for one " +
		"event and subscription, only the newest is re-sent. To re-send any of these, name them."
}

// Run re-sends the named deliveries, or those that the filters match.
func (cmd deliveryResendCmd) Run(env *environment) error {
	filter, uids := cmd.filter(env), env.uids("the delivery", cmd.UIDs)
	env.chosen("deliveries", len(uids) > 0, cmd.deliveryFlags != deliveryFlags{},
		"--subscription, --state, --since and --until")
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		var resent []uuid.UUID
		var entries []operator.Entry
		var err error
		if len(uids) > 0 {
			resent, err = s.Webhooks.Deliveries.Resend(env.ctx, tx, uids, cliActor, cmd.Reason)
			for _, uid := range uids {
				entries = append(entries, entry("delivery.resend", uid.String(), cmd.Reason,
					map[string]any{"delivery_uids": resent}))
			}
		} else {
			resent, err = s.Webhooks.Deliveries.ResendMatching(env.ctx, tx, filter, cliActor, cmd.Reason)
			entries = []operator.Entry{entry("delivery.resend", "all that match", cmd.Reason,
				map[string]any{"chosen_by": cmd.deliveryFlags, "count": len(resent)})}
		}
		return done{entries: entries, out: resentOutput(resent), notes: noneResent(resent)}, err
	})
}

// noneResent is the note that the flags of a command matched nothing.
func noneResent(made []uuid.UUID) []string {
	if len(made) > 0 {
		return nil
	}
	return []string{"the flags match nothing to send again"}
}

// resentOutput prints the new deliveries that a command made.
func resentOutput(uids []uuid.UUID) output {
	return output{map[string]any{"resent": append([]uuid.UUID{}, uids...)}, func(w io.Writer) {
		for _, uid := range uids {
			fmt.Fprintln(w, uid)
		}
	}}
}
