package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/relay"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/why"
)

type eventCmd struct {
	List eventListCmd `cmd:"" help:"List events, newest first, with what became of their deliveries."`
	Show eventShowCmd `cmd:"" help:"Show one event: its body, and for each subscription why it did or did not get the event."`
	Why  eventWhyCmd  `cmd:"" help:"Explain why an event of an application, or of one of its draws, did not arrive."`
}

type listenCmd struct {
	URL      string   `required:"" help:"Base URL of the server's API, without /v2." placeholder:"BASE_URL"`
	ClientID string   `required:"" help:"Client id of a partner." placeholder:"ID"`
	Password string   `required:"" name:"client-secret-file" help:"File that holds the client's secret; - reads it from stdin." placeholder:"FILE"`
	Merchant string   `help:"Only this merchant's events; for a group client." placeholder:"UID"`
	Forward  string   `required:"" help:"Where to post the events." placeholder:"http://127.0.0.1:3000/hook"`
	Event    []string `help:"Only this event kind (repeatable); default: those that a subscription to all events gets." placeholder:"KIND"`
	Secret   string   `help:"Signing secret; default: a new one, printed on stderr." placeholder:"SECRET"`
}

// Help describes what is forwarded and how.
func (listenCmd) Help() string {
	return "Each event from now on is posted, signed, with the headers of a webhook except those of " +
		"delivery, attempt and retries. An event that the receiver does not answer with a 2xx is " +
		"posted again, with growing pauses, before the next one. The command prints one line per " +
		"event, survives restarts of the server, and ends on Ctrl-C. It needs no database."
}

// Run forwards until it is interrupted.
func (cmd listenCmd) Run(env *environment) error {
	follow := relay.Relay{
		BaseURL: cmd.URL, ClientID: cmd.ClientID, Merchant: cmd.Merchant, Forward: cmd.Forward,
		Secret: secret.New(cmd.Secret), Version: version,
		Lines: escapingWriter{env.stdout}, Notes: escapingWriter{env.stderr},
	}
	env.optionalUID("--merchant", cmd.Merchant)
	env.webAddress("--url", cmd.URL)
	env.webAddress("--forward", cmd.Forward)
	for _, kind := range cmd.Event {
		follow.Kinds = append(follow.Kinds, env.eventKind("--event", kind))
	}
	if env.usageErr != nil {
		return env.usageErr
	}
	if len(follow.Kinds) == 0 {
		follow.Kinds = lending.SpecifiedEventKinds()
	}
	from := env.stdin
	if cmd.Password != "-" {
		file, err := os.Open(cmd.Password)
		if err != nil {
			return usagef("--client-secret-file cannot be read: %s", err)
		}
		defer file.Close()
		from = file
	}
	text, err := env.readInput(func() ([]byte, error) {
		return io.ReadAll(io.LimitReader(from, 4<<10))
	})
	if err != nil {
		return fmt.Errorf("reading the client's secret: %w", err)
	}
	follow.ClientSecret = secret.New(strings.TrimSpace(string(text)))
	if cmd.Secret == "" {
		follow.Secret = secret.NewToken("whsec_")
		fmt.Fprintf(env.stderr, "signing secret: %s\n", follow.Secret.Reveal())
	}
	return follow.Run(env.ctx)
}

type eventListCmd struct {
	Kind        string `help:"Only this event kind." placeholder:"KIND"`
	Partner     string `help:"Only this partner's." placeholder:"UID"`
	Merchant    string `help:"Only this merchant's." placeholder:"UID"`
	Application string `help:"Only this application's." placeholder:"UID"`
	Since       string `help:"Occurred at or after, such as 2026-11-21T09:30:00Z." placeholder:"TIME"`
	Until       string `help:"Occurred before." placeholder:"TIME"`
	listFlags
}

// Run lists events.
func (cmd eventListCmd) Run(env *environment) error {
	filter := delivery.EventFilter{
		Kind:           env.eventKind("--kind", cmd.Kind),
		PartnerUID:     env.optionalUID("--partner", cmd.Partner),
		MerchantUID:    env.optionalUID("--merchant", cmd.Merchant),
		ApplicationUID: env.optionalUID("--application", cmd.Application),
		Since:          env.time("--since", cmd.Since), Until: env.time("--until", cmd.Until),
	}
	return rowsOf("events", newEventJSON,
		"EVENT\tTIME\tKIND\tAPPLICATION\tDELIVERIES",
		func(w io.Writer, e delivery.EventRecord) {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d delivered, %d made good, %d failed, %d open, "+
				"%d passed over\n",
				e.UID, e.OccurredAt.UTC().Format(time.RFC3339), e.Kind, e.ApplicationUID,
				e.FanOut.Delivered, e.FanOut.MadeGood, e.FanOut.Failed, e.FanOut.Open, e.FanOut.PassedOver)
		}).page(env, cmd.listFlags,
		func(s *app.Services, page postgres.Paging) ([]delivery.EventRecord, postgres.Cursor, error) {
			return s.Webhooks.Deliveries.Events(env.ctx, filter, page)
		})
}

// eventJSON is an event as commands print it.
type eventJSON struct {
	UID           uuid.UUID         `json:"event_uid"`
	Event         lending.EventKind `json:"event"`
	Partner       uuid.UUID         `json:"partner_uid"`
	Merchant      *uuid.UUID        `json:"merchant_uid"`
	Application   uuid.UUID         `json:"application_id"`
	Status        string            `json:"status"`
	Timestamp     string            `json:"timestamp"`
	Test          bool              `json:"test"`
	BodyRemovedAt *time.Time        `json:"body_removed_at"`
	FanOut        delivery.FanOut   `json:"deliveries"`
}

func newEventJSON(e delivery.EventRecord) eventJSON {
	return eventJSON{
		UID: e.UID, Event: e.Kind, Partner: e.PartnerUID, Merchant: e.MerchantUID,
		Application: e.ApplicationUID, Status: e.Status,
		Timestamp: lending.FormatTimestamp(e.OccurredAt), Test: e.Test,
		BodyRemovedAt: utc(e.BodyRemovedAt), FanOut: e.FanOut,
	}
}

type eventShowCmd struct {
	UID  string `arg:"" help:"Event."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// eventDetailJSON is an event with its body and its ledger.
type eventDetailJSON struct {
	eventJSON
	Body   *string      `json:"body"`
	Ledger []ledgerJSON `json:"ledger"`
}

// ledgerJSON says whether and why one subscription got the event.
type ledgerJSON struct {
	Subscription  uuid.UUID        `json:"subscription_uid"`
	Name          *string          `json:"name"`
	URL           string           `json:"url"`
	Verdict       delivery.Verdict `json:"verdict"`
	Version       *int             `json:"version"`
	Delivery      *uuid.UUID       `json:"delivery_uid"`
	DeliveryState *string          `json:"delivery_state"`
	Since         time.Time        `json:"created_at"`
	Until         *time.Time       `json:"deleted_at"`
}

// Run shows one event.
func (cmd eventShowCmd) Run(env *environment) error {
	uid := env.uid("the event", cmd.UID)
	return env.show(cmd.JSON, func(s *app.Services) (output, error) {
		detail, err := s.Webhooks.Deliveries.EventByUID(env.ctx, uid)
		printed := eventDetailJSON{
			eventJSON: newEventJSON(detail.EventRecord), Body: orNull(string(detail.Body)),
			Ledger: make([]ledgerJSON, 0, len(detail.Ledger)),
		}
		for _, line := range detail.Ledger {
			printed.Ledger = append(printed.Ledger, ledgerJSON{
				Subscription: line.SubscriptionUID, Name: orNull(line.SubscriptionName), URL: line.URL,
				Verdict: line.Verdict, Version: orNull(line.Version), Delivery: line.DeliveryUID,
				DeliveryState: orNull(string(line.DeliveryState)),
				Since:         line.Since.UTC(), Until: utc(line.Until),
			})
		}
		return output{printed, func(w io.Writer) {
			fmt.Fprintf(w, "event %s  %s\n  application  %s\n  status       %s\n  occurred     %s\n",
				detail.UID, detail.Kind, detail.ApplicationUID, detail.Status,
				lending.FormatTimestamp(detail.OccurredAt))
			if detail.BodyRemovedAt != nil {
				fmt.Fprintf(w, "  body         removed by retention on %s\n",
					detail.BodyRemovedAt.UTC().Format(time.DateOnly))
			} else {
				fmt.Fprintf(w, "  body         %s\n", detail.Body)
			}
			for _, line := range detail.Ledger {
				fmt.Fprintf(w, "  %s  %-20s %s", line.SubscriptionUID, line.Verdict, line.Label())
				if line.DeliveryUID != nil {
					fmt.Fprintf(w, "  delivery %s (%s)", line.DeliveryUID, line.DeliveryState)
				}
				if line.Version > 0 {
					fmt.Fprintf(w, "  by version %d", line.Version)
				}
				fmt.Fprintln(w)
			}
		}}, err
	})
}

type eventWhyCmd struct {
	Subject string `arg:"" help:"Application: its id, reference, borrower's name or e-mail address; or the number of a draw."`
	Event   string `required:"" help:"Event kind that was expected." placeholder:"KIND"`
	Status  string `help:"Only an event with this status, such as Approved." placeholder:"STATUS"`
	Draw    int64  `help:"Number of the draw; default: the draw that the subject names, or any." placeholder:"NUMBER"`
	JSON    bool   `name:"json" help:"Print one JSON document."`
}

// Help describes the arguments.
func (eventWhyCmd) Help() string {
	return "If there are several events of the kind, the answer is about the newest that failed, " +
		"else about the newest that waits, else about the newest. It also says why an event has not " +
		"happened: drawbridge event why '#1005' --event disbursement.funding.settled"
}

// whyJSON is an answer as commands print it.
type whyJSON struct {
	Application uuid.UUID     `json:"application_id"`
	Outcome     why.Outcome   `json:"outcome"`
	Sentence    string        `json:"sentence"`
	EventUID    *uuid.UUID    `json:"event_uid"`
	OccurredAt  *time.Time    `json:"timestamp"`
	Others      int           `json:"others"`
	Endpoints   []whyLineJSON `json:"endpoints"`
}

type whyLineJSON struct {
	Subscription uuid.UUID   `json:"subscription_uid"`
	Name         *string     `json:"name"`
	URL          string      `json:"url"`
	Outcome      why.Outcome `json:"outcome"`
	Sentence     string      `json:"sentence"`
	Delivery     *uuid.UUID  `json:"delivery_uid"`
	At           *time.Time  `json:"at"`
}

// Run prints the reasons.
func (cmd eventWhyCmd) Run(env *environment) error {
	question := why.Question{Kind: env.eventKind("--event", cmd.Event), Status: cmd.Status}
	return env.show(cmd.JSON, func(s *app.Services) (output, error) {
		found, err := s.Why.Candidates(env.ctx, cmd.Subject, question)
		if err != nil {
			return output{}, err
		}
		if len(found) != 1 {
			return output{}, ambiguous(cmd.Subject, found)
		}
		question = found[0].Question
		if cmd.Draw != 0 {
			question.Draw = cmd.Draw
		}
		answer, err := s.Why.Ask(env.ctx, question)
		printed := whyJSON{
			Application: question.ApplicationUID, Outcome: answer.Outcome, Sentence: answer.Sentence,
			Others: answer.Others, Endpoints: make([]whyLineJSON, 0, len(answer.Lines)),
		}
		if answer.Event != nil {
			printed.EventUID, printed.OccurredAt = &answer.Event.UID, utc(&answer.Event.OccurredAt)
		}
		for _, line := range answer.Lines {
			printed.Endpoints = append(printed.Endpoints, whyLineJSON{
				line.SubscriptionUID, orNull(line.SubscriptionName), line.URL, line.Outcome, line.Sentence,
				line.DeliveryUID, utc(line.At),
			})
		}
		return output{printed, func(w io.Writer) {
			fmt.Fprintf(w, "%s: %s.\n", printed.Outcome, printed.Sentence)
			for _, line := range answer.Lines {
				fmt.Fprintf(w, "  %-20s %s  %s", line.Outcome, line.Label(), line.Sentence)
				if line.DeliveryUID != nil {
					fmt.Fprintf(w, "  delivery %s", line.DeliveryUID)
				}
				if line.At != nil {
					fmt.Fprintf(w, "  %s", line.At.UTC().Format(time.RFC3339))
				}
				fmt.Fprintln(w)
			}
			if printed.Others > 0 {
				fmt.Fprintf(w, "The application has %d more of this kind: drawbridge event list "+
					"--application %s --kind %s\n", printed.Others, printed.Application, question.Kind)
			}
		}}, err
	})
}

// ambiguous is the refusal of a name that matches nothing, or more than one thing.
func ambiguous(subject string, found []why.Candidate) error {
	if len(found) == 0 {
		return lending.NewError(lending.CodeNotFound, "no application or draw matches %q", subject)
	}
	var named []string
	for _, one := range found {
		named = append(named, fmt.Sprintf("%s (%s)", one.ApplicationUID, one.Title))
	}
	return lending.Invalid("subject", "%q may mean %s; name one by its id", subject,
		strings.Join(named, ", "))
}
