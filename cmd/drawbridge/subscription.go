package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
)

// cliActor is who the records name for what a command did.
const cliActor = "command line"

type subscriptionCmd struct {
	Create subscriptionCreateCmd `cmd:"" help:"Create a subscription; its secret is shown once."`
	List   subscriptionListCmd   `cmd:"" help:"List subscriptions, newest first."`
	Show   subscriptionShowCmd   `cmd:"" help:"Show one subscription."`
	Update subscriptionUpdateCmd `cmd:"" help:"Change settings; only what is given changes. To another scheme, host or port a bearer token and secret header values must be given anew."`
	Pause  subscriptionPauseCmd  `cmd:"" help:"Hold deliveries back until it resumes."`
	Resume subscriptionResumeCmd `cmd:"" help:"Send again, what waited first."`
	Delete subscriptionDeleteCmd `cmd:"" help:"End it for good; what has not gone out is cancelled."`
	Test   subscriptionTestCmd   `cmd:"" help:"Send a marked sample event."`
	Probe  subscriptionProbeCmd  `cmd:"" help:"Look at the endpoint as a delivery would reach it, without sending one."`

	Versions      subscriptionVersionsCmd      `cmd:"" help:"List the versions, or compare two of them."`
	Restore       subscriptionRestoreCmd       `cmd:"" help:"Put an older version's settings back; the secret stays unless one is given."`
	CompareSecret subscriptionCompareSecretCmd `cmd:"" help:"Tell whether a secret, read from stdin, is the one in force."`
}

// subscriptionFlags are the settings, alike for create and update.
type subscriptionFlags struct {
	URL      string   `name:"url" help:"HTTPS endpoint." placeholder:"URL"`
	Auth     string   `help:"How deliveries authenticate: none, hmac or bearer." placeholder:"SCHEME"`
	Secret   string   `help:"Signing secret or bearer token of 16 to 256 bytes, or - to read it from the standard input; generated if absent." placeholder:"TEXT"`
	Event    []string `sep:"none" help:"Event kind, repeatable, or all." placeholder:"KIND"`
	Header   []string `sep:"none" help:"Custom header 'Name: value', repeatable; secret or plain as its name sounds." placeholder:"LINE"`
	Merchant []string `sep:"none" help:"Only this merchant's events, repeatable." placeholder:"UID"`
	Rate     *int     `help:"Requests per second at most; 0 for no limit." placeholder:"N"`
	JSON     bool     `name:"json" help:"Print one JSON document."`

	SecretHeader []string `sep:"none" help:"Custom header whose value is never shown, repeatable." placeholder:"LINE"`
	PlainHeader  []string `sep:"none" help:"Custom header whose value may be read, repeatable." placeholder:"LINE"`
}

func (f subscriptionFlags) headers() ([]webhook.Header, error) {
	var faults lending.Faults
	headers := make([]webhook.Header, 0, len(f.Header))
	for _, kind := range []struct {
		lines []string
		mark  func(h *webhook.Header)
	}{
		{f.Header, func(*webhook.Header) {}},
		{f.SecretHeader, func(h *webhook.Header) { h.Plain = false }},
		{f.PlainHeader, func(h *webhook.Header) { h.Plain = true }},
	} {
		for _, line := range kind.lines {
			header, err := webhook.ParseHeader(line)
			faults.Merge(err)
			kind.mark(&header)
			headers = append(headers, header)
		}
	}
	return headers, faults.Err()
}

// secretFlag is the secret that a flag gives, the zero value for none; - reads it
// from the standard input, without its line end.
func (env *environment) secretFlag(text string) (secret.String, error) {
	if text != "-" {
		return secret.New(text), nil
	}
	const longest = 4096
	read, err := io.ReadAll(io.LimitReader(env.stdin, longest))
	if err != nil {
		return secret.String{}, fmt.Errorf("reading the secret: %w", err)
	}
	line := strings.TrimSuffix(strings.TrimSuffix(string(read), "\n"), "\r")
	if line == "" {
		return secret.String{}, usagef("--secret - needs a secret on the standard input")
	}
	return secret.New(line), nil
}

// headerJSON is a custom header as commands print it.
type headerJSON struct {
	Name string `json:"name"`
	// Value is null when it is secret.
	Value  *string `json:"value"`
	Secret bool    `json:"secret"`
}

func newHeadersJSON(headers []webhook.Header) []headerJSON {
	printed := make([]headerJSON, 0, len(headers))
	for _, header := range headers {
		one := headerJSON{Name: header.Name, Secret: !header.Plain}
		if header.Plain {
			one.Value = &header.Value
		}
		printed = append(printed, one)
	}
	return printed
}

// subscriptionJSON is a subscription as commands print it.
type subscriptionJSON struct {
	UID      uuid.UUID    `json:"subscription_uid"`
	Partner  uuid.UUID    `json:"partner_uid"`
	URL      string       `json:"url"`
	Auth     webhook.Auth `json:"auth"`
	Events   []string     `json:"events"`
	Headers  []headerJSON `json:"headers"`
	Merchant []uuid.UUID  `json:"merchants"`
	// Rate is in requests per second, null without a limit.
	Rate  *int          `json:"rate"`
	State webhook.State `json:"state"`
	// MissingKey names the key that a secret or headers are sealed with and that is
	// not there.
	MissingKey string `json:"missing_key,omitempty"`
	// Secret is present only in the answer that creates or rotates it.
	Secret *string `json:"secret"`
}

func newSubscriptionJSON(s webhook.Subscription) subscriptionJSON {
	printed := subscriptionJSON{
		UID: s.UID, Partner: s.PartnerUID, URL: s.URL, Auth: s.Auth, Events: s.Events,
		Headers: newHeadersJSON(s.Headers), Merchant: s.Merchants, State: s.State,
		MissingKey: s.MissingKey,
	}
	if s.Rate > 0 {
		printed.Rate = &s.Rate
	}
	if printed.Merchant == nil {
		printed.Merchant = []uuid.UUID{}
	}
	return printed
}

func (env *environment) printSubscription(
	asJSON bool, s webhook.Subscription, value secret.String,
) error {
	printed := newSubscriptionJSON(s)
	if !value.IsZero() {
		text := value.Reveal()
		printed.Secret = &text
	}
	return env.print(asJSON, printed, func(w io.Writer) {
		fmt.Fprintf(w, "subscription %s (%s)\n  url     %s\n  auth    %s\n  events  %s\n",
			s.UID, s.State, s.URL, s.Auth, strings.Join(s.Events, ", "))
		if s.Rate > 0 {
			fmt.Fprintf(w, "  rate    %d per second\n", s.Rate)
		}
		for _, header := range s.Headers {
			fmt.Fprintf(w, "  header  %s\n", header)
		}
		if s.Unopened != "" {
			fmt.Fprintf(w, "  nothing can be sent: %s\n", s.Unopened)
		}
		for _, merchant := range s.Merchants {
			fmt.Fprintf(w, "  merchant  %s\n", merchant)
		}
		if printed.Secret != nil {
			fmt.Fprintf(w, "  secret  %s   (shown only now; keep it safe)\n", *printed.Secret)
		}
	})
}

type subscriptionCreateCmd struct {
	Partner string `required:"" help:"Partner that gets the events." placeholder:"UID"`
	subscriptionFlags
}

// Run creates a subscription.
func (cmd subscriptionCreateCmd) Run(env *environment) error {
	partner, err := parseUID("--partner", cmd.Partner)
	if err != nil {
		return err
	}
	merchants, err := parseUIDs("--merchant", cmd.Merchant)
	if err != nil {
		return err
	}
	headers, err := cmd.headers()
	if err != nil {
		return err
	}
	settings := webhook.Settings{
		URL: cmd.URL, Auth: webhook.Auth(orElse(cmd.Auth, string(webhook.AuthHMAC))),
		Events: cmd.Event, Merchants: merchants, Headers: headers,
	}
	if settings.Secret, err = env.secretFlag(cmd.Secret); err != nil {
		return err
	}
	if cmd.Rate != nil {
		settings.Rate = *cmd.Rate
	}
	return env.withServices(func(s *app.Services) error {
		warning, err := s.Webhooks.CheckDestination(env.ctx, cmd.URL)
		if err != nil {
			return err
		}
		return env.inTx(s, func(s *app.Services, tx *postgres.Tx) (func() error, error) {
			created, value, err := s.Webhooks.Subscribe(env.ctx, tx, partner, settings, cliActor)
			if err != nil {
				return nil, err
			}
			err = env.auditSubscription(s, tx, subscriptionAudit{action: "create", after: created})
			return func() error {
				env.warn(warning)
				return env.printSubscription(cmd.JSON, created, value)
			}, err
		})
	})
}

// warn tells what deserves attention although it worked; empty is nothing.
func (env *environment) warn(warning string) {
	if warning != "" {
		fmt.Fprintf(env.stderr, "warning: %s\n", warning)
	}
}

type subscriptionListCmd struct {
	Partner string `help:"Only this partner's." placeholder:"UID"`
	listFlags
}

// Run lists subscriptions.
func (cmd subscriptionListCmd) Run(env *environment) error {
	filter := webhook.SubscriptionFilter{}
	var err error
	if filter.PartnerUID, err = optionalUID("--partner", cmd.Partner); err != nil {
		return err
	}
	if filter.Limit, filter.Cursor, err = cmd.page(); err != nil {
		return err
	}
	return env.withServices(func(s *app.Services) error {
		found, next, err := s.Webhooks.Subscriptions(env.ctx, filter)
		if err != nil {
			return err
		}
		return listing[webhook.Subscription, subscriptionJSON]{
			"subscriptions", found, newSubscriptionJSON, func(w io.Writer, s webhook.Subscription) {
				fmt.Fprintf(w, "%s  %-8s %-6s %s\n", s.UID, s.State, s.Auth, s.URL)
			},
		}.printPage(env, cmd.JSON, next)
	})
}

type subscriptionShowCmd struct {
	UID  string `arg:"" help:"Subscription."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Run shows one subscription.
func (cmd subscriptionShowCmd) Run(env *environment) error {
	uid, err := parseUID("the subscription", cmd.UID)
	if err != nil {
		return err
	}
	return env.withServices(func(s *app.Services) error {
		found, err := s.Webhooks.Subscription(env.ctx, uid)
		if err != nil {
			return err
		}
		return env.printSubscription(cmd.JSON, found, secret.String{})
	})
}

type subscriptionUpdateCmd struct {
	UID string `arg:"" help:"Subscription."`
	subscriptionFlags
	KeepHeader []string      `sep:"none" help:"Custom header that keeps its stored value, repeatable; the header flags together replace the whole set." placeholder:"NAME"`
	NoHeaders  bool          `help:"Remove every custom header."`
	Overlap    time.Duration `default:"24h" help:"How long the former signing secret still signs beside a new one."`
	Base       int           `help:"Version that the change was made from; refused if the configuration changed since." placeholder:"N"`
	Reason     string        `help:"Why, for the record." placeholder:"TEXT"`
}

// Run changes a subscription.
func (cmd subscriptionUpdateCmd) Run(env *environment) error {
	uid, err := parseUID("the subscription", cmd.UID)
	if err != nil {
		return err
	}
	patch, err := cmd.patch(env)
	if err != nil {
		return err
	}
	return env.withServices(func(s *app.Services) error {
		var warning string
		if cmd.URL != "" {
			if warning, err = s.Webhooks.CheckDestination(env.ctx, cmd.URL); err != nil {
				return err
			}
		}
		return env.inTx(s, func(s *app.Services, tx *postgres.Tx) (func() error, error) {
			before, err := s.Webhooks.Subscription(env.ctx, uid)
			if err != nil {
				return nil, err
			}
			changed, value, err := s.Webhooks.Amend(env.ctx, tx, uid, patch, cliActor)
			if err != nil {
				return nil, err
			}
			err = env.auditSubscription(s, tx, subscriptionAudit{
				action: cmd.action(), before: &before, after: changed, reason: cmd.Reason,
			})
			return func() error {
				env.warn(warning)
				return env.printSubscription(cmd.JSON, changed, value)
			}, err
		})
	})
}

// action is what the audit log calls the change: a new secret is the weightiest.
func (cmd subscriptionUpdateCmd) action() string {
	if cmd.Secret != "" {
		return "rotate_secret"
	}
	return "update"
}

func (cmd subscriptionUpdateCmd) patch(env *environment) (webhook.Patch, error) {
	patch := webhook.Patch{
		Events: cmd.Event, Rate: cmd.Rate, Overlap: cmd.Overlap, Base: cmd.Base,
		Reason: cmd.Reason,
	}
	if cmd.Overlap < 0 {
		return patch, usagef("--overlap must not be negative")
	}
	headers, err := cmd.headers()
	if err != nil {
		return patch, err
	}
	for _, name := range cmd.KeepHeader {
		headers = append(headers, webhook.Header{Name: name, Kept: true})
	}
	if cmd.NoHeaders && len(headers) > 0 {
		return patch, usagef("--no-headers and the other header flags exclude each other")
	}
	if cmd.NoHeaders || len(headers) > 0 {
		patch.Headers = &headers
	}
	if cmd.URL != "" {
		patch.URL = &cmd.URL
	}
	if cmd.Auth != "" {
		auth := webhook.Auth(cmd.Auth)
		patch.Auth = &auth
	}
	value, err := env.secretFlag(cmd.Secret)
	if err != nil {
		return patch, err
	}
	if !value.IsZero() {
		patch.Secret = &value
	}
	merchants, err := parseUIDs("--merchant", cmd.Merchant)
	patch.Merchants = merchants
	return patch, err
}

type subscriptionPauseCmd struct{ subscriptionShowCmd }

// Run pauses a subscription.
func (cmd subscriptionPauseCmd) Run(env *environment) error {
	return cmd.enter(env, "pause", (*webhook.Service).Pause)
}

type subscriptionResumeCmd struct{ subscriptionShowCmd }

// Run resumes a subscription.
func (cmd subscriptionResumeCmd) Run(env *environment) error {
	return cmd.enter(env, "resume", (*webhook.Service).Resume)
}

type subscriptionDeleteCmd struct{ subscriptionShowCmd }

// Run deletes a subscription.
func (cmd subscriptionDeleteCmd) Run(env *environment) error {
	return cmd.enter(env, "delete", (*webhook.Service).Delete)
}

// transition takes a subscription to another state.
type transition func(
	s *webhook.Service, ctx context.Context, tx *postgres.Tx, uid uuid.UUID, by string,
) (webhook.Subscription, error)

func (cmd subscriptionShowCmd) enter(env *environment, action string, to transition) error {
	uid, err := parseUID("the subscription", cmd.UID)
	if err != nil {
		return err
	}
	return env.change(func(s *app.Services, tx *postgres.Tx) (func() error, error) {
		before, err := s.Webhooks.Subscription(env.ctx, uid)
		if err != nil {
			return nil, err
		}
		changed, err := to(s.Webhooks, env.ctx, tx, uid, cliActor)
		if err != nil {
			return nil, err
		}
		err = env.auditSubscription(s, tx, subscriptionAudit{
			action: action, before: &before, after: changed,
		})
		return func() error {
			return env.printSubscription(cmd.JSON, changed, secret.String{})
		}, err
	})
}

type subscriptionTestCmd struct {
	UID   string `arg:"" help:"Subscription."`
	Event string `default:"application.status.update" help:"Event kind of the sample." placeholder:"KIND"`
	JSON  bool   `name:"json" help:"Print one JSON document."`
}

// Run sends a test event.
func (cmd subscriptionTestCmd) Run(env *environment) error {
	uid, err := parseUID("the subscription", cmd.UID)
	if err != nil {
		return err
	}
	return env.change(func(s *app.Services, tx *postgres.Tx) (func() error, error) {
		delivery, err := s.Webhooks.Test(env.ctx, tx, uid, lending.EventKind(cmd.Event))
		if err != nil {
			return nil, err
		}
		err = s.Operators.Audit(env.ctx, tx, operator.Entry{
			Actor: cliActor, Action: "subscription.test", SubjectKind: "subscription",
			Subject: uid.String(),
			After:   map[string]any{"delivery_uid": delivery, "event": cmd.Event},
		})
		return func() error {
			document := map[string]any{"delivery_uid": delivery}
			return env.print(cmd.JSON, document, func(w io.Writer) {
				fmt.Fprintf(w, "test delivery %s\n", delivery)
			})
		}, err
	})
}
