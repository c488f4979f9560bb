package main

import (
	"cmp"
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
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

type subscriptionCmd struct {
	Create subscriptionCreateCmd `cmd:"" help:"Create a subscription; its secret is shown once."`
	List   subscriptionListCmd   `cmd:"" help:"List subscriptions, newest first."`
	Show   subscriptionShowCmd   `cmd:"" help:"Show one subscription."`
	Update subscriptionUpdateCmd `cmd:"" help:"Change settings; those that are not given stay. If the URL gets another scheme, host or port, a bearer token and secret header values must be given again."`
	Pause  subscriptionPauseCmd  `cmd:"" help:"Pause a subscription; deliveries are held back until it is resumed."`
	Resume subscriptionResumeCmd `cmd:"" help:"Resume a paused subscription; deliveries that waited go first."`
	Delete subscriptionDeleteCmd `cmd:"" help:"Delete a subscription for good; deliveries that have not gone out are cancelled."`
	Test   subscriptionTestCmd   `cmd:"" help:"Send a marked sample event."`
	Probe  subscriptionProbeCmd  `cmd:"" help:"Probe the endpoint as a delivery would reach it, without sending one."`

	Versions      subscriptionVersionsCmd      `cmd:"" help:"List the versions, or compare two of them."`
	Restore       subscriptionRestoreCmd       `cmd:"" help:"Restore an older version's settings; the secret stays unless one is given."`
	CompareSecret subscriptionCompareSecretCmd `cmd:"" help:"Check whether a secret, read from stdin, is the one in force."`
}

// subscriptionFlags are the settings that create and update share.
type subscriptionFlags struct {
	URL      string   `name:"url" help:"HTTPS endpoint." placeholder:"URL"`
	Auth     string   `help:"How deliveries authenticate: none, hmac or bearer." placeholder:"SCHEME"`
	Secret   string   `help:"Signing secret or bearer token of 16 to 256 bytes, or - to read it from the standard input; default for a new subscription: a generated one." placeholder:"TEXT"`
	Event    []string `sep:"none" help:"Event kind, repeatable, or all." placeholder:"KIND"`
	Header   []string `sep:"none" help:"Custom header 'Name: value', repeatable; its name decides whether it is secret or plain." placeholder:"LINE"`
	Merchant []string `sep:"none" help:"Only this merchant's events, repeatable." placeholder:"UID"`
	Rate     *int     `help:"Maximum requests per second; 0 for no limit." placeholder:"N"`
	Name     *string  `empty:"" help:"Name to show for the subscription, up to 100 characters; \"\" for none." placeholder:"TEXT"`
	Retry    string   `help:"Delays before attempts 2 and 3, such as 5m,2h, each 1s to 72h; the word default for those of DRAWBRIDGE_WEBHOOK_RETRY." placeholder:"D1,D2"`
	Standard *bool    `help:"Also sign according to Standard Webhooks (with --auth hmac); --standard=false turns it off."`
	JSON     bool     `name:"json" help:"Print one JSON document."`

	SecretHeader []string `sep:"none" help:"Custom header whose value is never shown, repeatable." placeholder:"LINE"`
	PlainHeader  []string `sep:"none" help:"Custom header whose value may be read, repeatable." placeholder:"LINE"`
}

// retry is the value of the flag, nil if it is absent.
func (f subscriptionFlags) retry(env *environment) *subscription.Delays {
	var delays subscription.Delays
	switch f.Retry {
	case "":
		return nil
	case "default":
		return &delays
	}
	delays, err := subscription.ParseDelays(f.Retry)
	if err != nil {
		env.refuse(err)
	}
	return &delays
}

func (f subscriptionFlags) headers(env *environment) []sender.Header {
	var errs lending.FieldErrors
	headers := make([]sender.Header, 0, len(f.Header))
	for _, kind := range []struct {
		lines []string
		mark  func(h *sender.Header)
	}{
		{f.Header, func(*sender.Header) {}},
		{f.SecretHeader, func(h *sender.Header) { h.Plain = false }},
		{f.PlainHeader, func(h *sender.Header) { h.Plain = true }},
	} {
		for _, line := range kind.lines {
			header, err := sender.ParseHeader(line)
			errs.Merge(err)
			kind.mark(&header)
			headers = append(headers, header)
		}
	}
	if err := errs.Err(); err != nil {
		env.refuse(err)
	}
	return headers
}

// headerJSON is a custom header as commands print it.
type headerJSON struct {
	Name string `json:"name"`
	// Value is null when it is secret.
	Value  *string `json:"value"`
	Secret bool    `json:"secret"`
}

func newHeadersJSON(headers []sender.Header) []headerJSON {
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
	Auth     sender.Auth  `json:"auth"`
	Events   []string     `json:"events"`
	Headers  []headerJSON `json:"headers"`
	Merchant []uuid.UUID  `json:"merchants"`
	// Rate is in requests per second, null without a limit.
	Rate *int `json:"rate"`
	// Name is null if there is none, Retry if there are no delays of its own.
	Name     *string            `json:"name"`
	Retry    []string           `json:"retry"`
	Standard bool               `json:"standard"`
	State    subscription.State `json:"state"`
	// MissingKey names the key with which a secret or headers are encrypted, if the program
	// does not have it.
	MissingKey string `json:"missing_key,omitempty"`
	// StoppedAt is the time since which nothing is sent, because a process could not decrypt the
	// secret or the headers.
	StoppedAt *time.Time `json:"stopped_at,omitempty"`
	// Secret is present only in the answer that creates or rotates it.
	Secret *string `json:"secret"`
}

func newSubscriptionJSON(s subscription.Subscription) subscriptionJSON {
	return subscriptionJSON{
		UID: s.UID, Partner: s.PartnerUID, URL: s.URL, Auth: s.Auth, Events: s.Events,
		Headers: newHeadersJSON(s.Headers), Merchant: append([]uuid.UUID{}, s.Merchants...),
		Rate: orNull(max(s.Rate, 0)), State: s.State, MissingKey: s.MissingKey,
		StoppedAt: utc(s.StoppedAt),
		Name:      orNull(s.Name), Retry: s.Retry.Texts(), Standard: s.Standard,
	}
}

// stateWords is the state in words: a stopped subscription gets nothing, whatever its state.
func stateWords(s subscription.Subscription) string {
	if s.StoppedAt != nil && s.State != subscription.StateDeleted {
		return string(s.State) + ", stopped"
	}
	return string(s.State)
}

// subscriptionOutput prints a subscription, with its secret if that is new.
func subscriptionOutput(s subscription.Subscription, value secret.String) output {
	printed := newSubscriptionJSON(s)
	printed.Secret = orNull(value.Reveal())
	return output{printed, func(w io.Writer) {
		fmt.Fprintf(w, "subscription %s (%s)\n  url     %s\n  auth    %s\n  events  %s\n",
			s.UID, stateWords(s), s.URL, s.Auth, strings.Join(s.Events, ", "))
		if s.Name != "" {
			fmt.Fprintf(w, "  name    %s\n", s.Name)
		}
		if s.Retry.IsSet() {
			fmt.Fprintf(w, "  retry   %s\n", s.Retry)
		}
		if s.Standard {
			fmt.Fprintln(w, "  also signed according to Standard Webhooks")
		}
		if s.Rate > 0 {
			fmt.Fprintf(w, "  rate    %d per second\n", s.Rate)
		}
		for _, header := range s.Headers {
			fmt.Fprintf(w, "  header  %s\n", header)
		}
		if s.Unopened != "" {
			fmt.Fprintf(w, "  nothing can be sent: %s\n", s.Unopened)
		}
		if other := s.OtherKeys(); other != "" {
			fmt.Fprintf(w, "  nothing is sent: %s\n", other)
		}
		for _, merchant := range s.Merchants {
			fmt.Fprintf(w, "  merchant  %s\n", merchant)
		}
		if printed.Secret != nil {
			fmt.Fprintf(w, "  secret  %s   (shown only now; keep it safe)\n", *printed.Secret)
		}
	}}
}

// subscriptionEntry is the audit log entry of a change to a subscription; before is nil for a
// new one.
func subscriptionEntry(
	action, reason string, before *subscription.Subscription, after subscription.Subscription,
) operator.Entry {
	recorded := entry("subscription."+action, after.UID.String(), reason, after.Audited())
	if before != nil {
		recorded.Before = before.Audited()
	}
	return recorded
}

// lockSubscription locks a subscription and returns it as it is before the change in tx.
func (env *environment) lockSubscription(
	s *app.Services, tx *postgres.Tx, uid uuid.UUID,
) (subscription.Subscription, error) {
	if _, err := subscription.Lock(env.ctx, tx, uid); err != nil {
		return subscription.Subscription{}, err
	}
	return s.Webhooks.Subscriptions.Get(env.ctx, uid)
}

type subscriptionCreateCmd struct {
	Partner string `required:"" help:"Partner that gets the events." placeholder:"UID"`
	subscriptionFlags
}

// Run creates a subscription.
func (cmd subscriptionCreateCmd) Run(env *environment) error {
	partner := env.uid("--partner", cmd.Partner)
	settings := subscription.Settings{
		URL: cmd.URL, Auth: cmp.Or(sender.Auth(cmd.Auth), sender.AuthHMAC), Events: cmd.Event,
		Merchants: env.uids("--merchant", cmd.Merchant), Headers: cmd.headers(env),
		Secret: env.secretFlag(cmd.Secret),
	}
	settings.Rate, settings.Name = postgres.OrZero(cmd.Rate), postgres.OrZero(cmd.Name)
	settings.Retry = postgres.OrZero(cmd.retry(env))
	settings.Standard = postgres.OrZero(cmd.Standard)
	return env.changeAt(cmd.checkURL(env), cmd.JSON, func(
		s *app.Services, tx *postgres.Tx,
	) (done, error) {
		created, value, err := s.Webhooks.Subscriptions.Subscribe(env.ctx, tx, partner, settings,
			cliActor)
		return did(subscriptionEntry("create", "", nil, created), subscriptionOutput(created, value)), err
	})
}

// destinationCheck looks up the destination of a change in DNS. A warning does not prevent the
// change.
type destinationCheck func(s *subscription.Service) (warning string, err error)

// checkURL checks the destination that the flags name.
func (f subscriptionFlags) checkURL(env *environment) destinationCheck {
	return func(s *subscription.Service) (string, error) { return s.CheckDestination(env.ctx, f.URL) }
}

// changeAt is change for a subscription whose destination may be new: it is looked up in DNS
// before the transaction.
func (env *environment) changeAt(
	check destinationCheck, asJSON bool, do func(s *app.Services, tx *postgres.Tx) (done, error),
) error {
	return env.withServices(func(s *app.Services) error {
		warning, err := check(s.Webhooks.Subscriptions)
		if err != nil {
			return err
		}
		return env.changeOver(s, asJSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
			made, err := do(s, tx)
			if warning != "" {
				made.notes = append(made.notes, "warning: "+warning)
			}
			return made, err
		})
	})
}

type subscriptionListCmd struct {
	Partner string `help:"Only this partner's." placeholder:"UID"`
	listFlags
}

// Run lists subscriptions.
func (cmd subscriptionListCmd) Run(env *environment) error {
	filter := subscription.Filter{PartnerUID: env.optionalUID("--partner", cmd.Partner)}
	return rowsOf("subscriptions", newSubscriptionJSON,
		"SUBSCRIPTION\tSTATE\tAUTHENTICATION\tNAME\tURL",
		func(w io.Writer, s subscription.Subscription) {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.UID, stateWords(s), s.Auth, s.Name, s.URL)
		}).page(env, cmd.listFlags, func(
		s *app.Services, page postgres.Paging,
	) ([]subscription.Subscription, postgres.Cursor, error) {
		return s.Webhooks.Subscriptions.List(env.ctx, filter, page)
	})
}

type subscriptionShowCmd struct {
	UID  string `arg:"" help:"Subscription."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Run shows one subscription.
func (cmd subscriptionShowCmd) Run(env *environment) error {
	uid := env.uid("the subscription", cmd.UID)
	return env.show(cmd.JSON, func(s *app.Services) (output, error) {
		found, err := s.Webhooks.Subscriptions.Get(env.ctx, uid)
		return subscriptionOutput(found, secret.String{}), err
	})
}

type subscriptionUpdateCmd struct {
	UID string `arg:"" help:"Subscription."`
	subscriptionFlags
	KeepHeader []string      `sep:"none" help:"Custom header that keeps its stored value, repeatable; the header flags together replace the whole set." placeholder:"NAME"`
	NoHeaders  bool          `help:"Remove every custom header."`
	Overlap    time.Duration `default:"24h" help:"How long the former signing secret keeps signing alongside a new one; an even older one stops at once."`
	Base       int           `help:"Version that the change is based on; the change is refused if the configuration has changed since." placeholder:"N"`
	Reason     string        `help:"Why, for the record." placeholder:"TEXT"`
}

// Run changes a subscription.
func (cmd subscriptionUpdateCmd) Run(env *environment) error {
	uid, patch := env.uid("the subscription", cmd.UID), cmd.patch(env)
	return env.changeAt(cmd.checkURL(env), cmd.JSON, func(
		s *app.Services, tx *postgres.Tx,
	) (done, error) {
		before, err := env.lockSubscription(s, tx, uid)
		if err != nil {
			return done{}, err
		}
		changed, value, err := s.Webhooks.Subscriptions.Amend(env.ctx, tx, uid, patch, cliActor)
		action := "update"
		if cmd.Secret != "" && !value.IsZero() { // the most important change
			action = "rotate_secret"
		}
		made := did(subscriptionEntry(action, cmd.Reason, &before, changed),
			subscriptionOutput(changed, value))
		made.notes = rotationNotes(before, changed, value, tx.Now)
		return made, byFlags(err)
	})
}

func (cmd subscriptionUpdateCmd) patch(env *environment) subscription.Patch {
	patch := subscription.Patch{
		Events: cmd.Event, Rate: cmd.Rate, Overlap: cmd.Overlap, Base: cmd.Base,
		Reason: cmd.Reason, Name: cmd.Name, Retry: cmd.retry(env), Standard: cmd.Standard,
	}
	headers := cmd.headers(env)
	for _, name := range cmd.KeepHeader {
		headers = append(headers, sender.Header{Name: name, Kept: true})
	}
	if cmd.NoHeaders && len(headers) > 0 {
		env.refusef("--no-headers cannot be combined with the other header flags")
	}
	if cmd.NoHeaders || len(headers) > 0 {
		patch.Headers = &headers
	}
	patch.URL, patch.Auth = orNull(cmd.URL), orNull(sender.Auth(cmd.Auth))
	if value := env.secretFlag(cmd.Secret); !value.IsZero() {
		patch.Secret = &value
	}
	patch.Merchants = env.uids("--merchant", cmd.Merchant)
	return patch
}

type subscriptionPauseCmd struct{ subscriptionShowCmd }

// Run pauses a subscription.
func (cmd subscriptionPauseCmd) Run(env *environment) error {
	return cmd.enter(env, "pause", (*subscription.Service).Pause)
}

type subscriptionResumeCmd struct{ subscriptionShowCmd }

// Run resumes a subscription.
func (cmd subscriptionResumeCmd) Run(env *environment) error {
	return cmd.enter(env, "resume", (*subscription.Service).Resume)
}

type subscriptionDeleteCmd struct{ subscriptionShowCmd }

// Run deletes a subscription.
func (cmd subscriptionDeleteCmd) Run(env *environment) error {
	return cmd.enter(env, "delete", (*subscription.Service).Delete)
}

// transition changes the state of a subscription.
type transition func(
	s *subscription.Service, ctx context.Context, tx *postgres.Tx, uid uuid.UUID, by string,
) (subscription.Subscription, error)

func (cmd subscriptionShowCmd) enter(env *environment, action string, to transition) error {
	uid := env.uid("the subscription", cmd.UID)
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		before, err := env.lockSubscription(s, tx, uid)
		if err != nil {
			return done{}, err
		}
		changed, err := to(s.Webhooks.Subscriptions, env.ctx, tx, uid, cliActor)
		return did(subscriptionEntry(action, "", &before, changed),
			subscriptionOutput(changed, secret.String{})), err
	})
}
