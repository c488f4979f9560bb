package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

type bulkCmd struct {
	Create  bulkCreateCmd  `cmd:"" help:"Choose what to send again and print the plan; nothing is sent without --confirm."`
	List    bulkListCmd    `cmd:"" help:"List bulk re-sends, newest first."`
	Show    bulkShowCmd    `cmd:"" help:"Show one: its plan, or how far it has come."`
	Confirm bulkConfirmCmd `cmd:"" help:"Fix the set of a draft and begin to send it."`
	Pause   bulkPauseCmd   `cmd:"" help:"Hold back what has not been sent."`
	Resume  bulkResumeCmd  `cmd:"" help:"Go on sending."`
	Cancel  bulkCancelCmd  `cmd:"" help:"Withdraw what has not been sent, or discard a draft."`
}

// bulkJSON is a bulk re-send as commands print it.
type bulkJSON struct {
	UID           uuid.UUID          `json:"bulk_uid"`
	Partner       uuid.UUID          `json:"partner_uid"`
	Kind          webhook.BulkKind   `json:"kind"`
	State         webhook.BulkState  `json:"state"`
	Pace          int                `json:"pace"`
	SkipNewer     bool               `json:"skip_newer"`
	SkipDelivered bool               `json:"skip_delivered"`
	Reason        *string            `json:"reason"`
	CreatedBy     string             `json:"created_by"`
	CreatedAt     time.Time          `json:"created_at"`
	ConfirmedAt   *time.Time         `json:"confirmed_at"`
	EndedAt       *time.Time         `json:"ended_at"`
	Total         int                `json:"total"`
	Counts        webhook.BulkCounts `json:"counts"`
}

func newBulkJSON(b webhook.Bulk) bulkJSON {
	return bulkJSON{
		UID: b.UID, Partner: b.Scope.PartnerUID, Kind: b.Scope.Kind, State: b.State,
		Pace: b.Options.Pace, SkipNewer: b.Options.SkipNewer,
		SkipDelivered: b.Options.SkipDelivered, Reason: orNull(b.Reason), CreatedBy: b.CreatedBy,
		CreatedAt: b.CreatedAt.UTC(), ConfirmedAt: orNull(b.ConfirmedAt.UTC()),
		EndedAt: orNull(b.EndedAt.UTC()), Total: b.Counts.Total(), Counts: b.Counts,
	}
}

// planJSON is what confirming a draft now would mean.
type planJSON struct {
	Total         int                        `json:"total"`
	Skipped       map[webhook.SkipReason]int `json:"skipped"`
	Subscriptions []planLaneJSON             `json:"subscriptions"`
	Risks         map[string]int             `json:"risks"`
	Seconds       float64                    `json:"seconds"`
}

type planLaneJSON struct {
	UID    uuid.UUID                 `json:"subscription_uid"`
	URL    string                    `json:"url"`
	State  webhook.State             `json:"state"`
	Total  int                       `json:"total"`
	Events map[lending.EventKind]int `json:"events"`
}

func newPlanJSON(plan webhook.BulkPlan, pace int) *planJSON {
	printed := planJSON{
		Total: plan.Total, Skipped: plan.Skipped, Subscriptions: []planLaneJSON{},
		Seconds: plan.Takes(pace).Seconds(),
		Risks: map[string]int{
			"delivered": plan.Risks.Delivered, "newer_delivered": plan.Risks.Newer,
			"outcome_unknown": plan.Risks.Unknown, "configuration_changed": plan.Risks.Changed,
			"subscription_paused": plan.Risks.Paused, "subscription_failing": plan.Risks.Failing,
		},
	}
	for _, lane := range plan.Lanes {
		printed.Subscriptions = append(printed.Subscriptions, planLaneJSON{
			lane.SubscriptionUID, lane.URL, lane.State, lane.Total, lane.Events,
		})
	}
	return &printed
}

// bulkDetailJSON is a bulk re-send with its plan, while it is a draft.
type bulkDetailJSON struct {
	bulkJSON
	Plan *planJSON `json:"plan"`
}

// printBulk prints one bulk re-send as it is now.
func (env *environment) printBulk(s *app.Services, uid uuid.UUID, asJSON bool) error {
	bulk, err := s.Webhooks.Bulk(env.ctx, uid)
	if err != nil {
		return err
	}
	printed := bulkDetailJSON{bulkJSON: newBulkJSON(bulk)}
	if bulk.State == webhook.BulkDraft {
		plan, err := s.Webhooks.PlanBulk(env.ctx, uid)
		if err != nil {
			return err
		}
		printed.Plan = newPlanJSON(plan, bulk.Options.Pace)
	}
	return env.print(asJSON, printed, func(w io.Writer) {
		printBulkLine(w, bulk)
		if printed.Plan != nil {
			printPlan(w, *printed.Plan)
		}
	})
}

func printBulkLine(w io.Writer, b webhook.Bulk) {
	c := b.Counts
	fmt.Fprintf(w, "%s  %s  %-9s %-9s %d waiting, %d under way, %d delivered, %d failed, "+
		"%d cancelled, %d skipped\n", b.UID, b.CreatedAt.UTC().Format(time.RFC3339), b.State,
		b.Scope.Kind, c.Waiting, c.Sent, c.Delivered, c.Failed, c.Cancelled, c.Skipped)
}

func printPlan(w io.Writer, plan planJSON) {
	fmt.Fprintf(w, "would send %d, in about %.0f s\n", plan.Total, plan.Seconds)
	for _, lane := range plan.Subscriptions {
		fmt.Fprintf(w, "  %d to %s (%s)\n", lane.Total, lane.URL, lane.State)
	}
	for reason, count := range plan.Skipped {
		fmt.Fprintf(w, "  leaves out %d: %s\n", count, reason)
	}
	for risk, count := range plan.Risks {
		if count > 0 {
			fmt.Fprintf(w, "  risk for %d: %s\n", count, risk)
		}
	}
}

// auditBulk keeps in the audit log what a command did with a bulk re-send.
func (env *environment) auditBulk(
	s *app.Services, tx *postgres.Tx, uid uuid.UUID, action, reason string,
) error {
	return s.Operators.Audit(env.ctx, tx, operator.Entry{
		Actor: cliActor, Action: "bulk_resend." + action, SubjectKind: "bulk_resend",
		Subject: uid.String(), Reason: reason,
	})
}

type bulkListCmd struct {
	Partner string `help:"Only this partner's." placeholder:"UID"`
	State   string `help:"draft, running, paused, cancelled or finished." placeholder:"STATE"`
	listFlags
}

// Run lists bulk re-sends.
func (cmd bulkListCmd) Run(env *environment) error {
	filter := webhook.BulksFilter{State: webhook.BulkState(cmd.State)}
	var err error
	if filter.PartnerUID, err = optionalUID("--partner", cmd.Partner); err != nil {
		return err
	}
	if filter.Limit, filter.Cursor, err = cmd.page(); err != nil {
		return err
	}
	switch filter.State {
	case "", webhook.BulkDraft, webhook.BulkRunning, webhook.BulkPaused, webhook.BulkCancelled,
		webhook.BulkFinished:
	default:
		return usagef("--state is %q; it must be draft, running, paused, cancelled or finished",
			cmd.State)
	}
	return env.withServices(func(s *app.Services) error {
		bulks, next, err := s.Webhooks.Bulks(env.ctx, filter)
		if err != nil {
			return err
		}
		return listing[webhook.Bulk, bulkJSON]{
			"bulk_resends", bulks, newBulkJSON, printBulkLine,
		}.printPage(env, cmd.JSON, next)
	})
}

type bulkShowCmd struct {
	UID  string `arg:"" help:"Bulk re-send."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Run shows one bulk re-send.
func (cmd bulkShowCmd) Run(env *environment) error {
	uid, err := parseUID("the bulk re-send", cmd.UID)
	if err != nil {
		return err
	}
	return env.withServices(func(s *app.Services) error { return env.printBulk(s, uid, cmd.JSON) })
}

type bulkConfirmCmd struct {
	UID    string `arg:"" help:"Bulk re-send."`
	Reason string `required:"" help:"Why, for the record." placeholder:"TEXT"`
	Count  int    `help:"How many it must be; required above 1,000." placeholder:"N"`
	JSON   bool   `name:"json" help:"Print one JSON document."`
}

// Run confirms a draft.
func (cmd bulkConfirmCmd) Run(env *environment) error {
	return env.moveBulk(cmd.UID, cmd.JSON, func(
		ctx context.Context, s *app.Services, tx *postgres.Tx, uid uuid.UUID,
	) error {
		_, err := s.Webhooks.ConfirmBulk(ctx, tx, uid, webhook.BulkConsent{
			By: cliActor, Reason: cmd.Reason, Count: cmd.Count,
		})
		if err != nil {
			return byFlags(err)
		}
		return env.auditBulk(s, tx, uid, "confirm", cmd.Reason)
	})
}

type bulkPauseCmd struct {
	UID  string `arg:"" help:"Bulk re-send."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Run pauses a bulk re-send.
func (cmd bulkPauseCmd) Run(env *environment) error {
	return env.moveBulk(cmd.UID, cmd.JSON, func(
		ctx context.Context, s *app.Services, tx *postgres.Tx, uid uuid.UUID,
	) error {
		if err := s.Webhooks.PauseBulk(ctx, tx, uid); err != nil {
			return err
		}
		return env.auditBulk(s, tx, uid, "pause", "")
	})
}

type bulkResumeCmd struct {
	UID  string `arg:"" help:"Bulk re-send."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Run resumes a bulk re-send.
func (cmd bulkResumeCmd) Run(env *environment) error {
	return env.moveBulk(cmd.UID, cmd.JSON, func(
		ctx context.Context, s *app.Services, tx *postgres.Tx, uid uuid.UUID,
	) error {
		if err := s.Webhooks.ResumeBulk(ctx, tx, uid); err != nil {
			return err
		}
		return env.auditBulk(s, tx, uid, "resume", "")
	})
}

type bulkCancelCmd struct {
	UID  string `arg:"" help:"Bulk re-send."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Run cancels a bulk re-send and prints how many deliveries were withdrawn.
func (cmd bulkCancelCmd) Run(env *environment) error {
	uid, err := parseUID("the bulk re-send", cmd.UID)
	if err != nil {
		return err
	}
	return env.change(func(s *app.Services, tx *postgres.Tx) (func() error, error) {
		count, err := s.Webhooks.CancelBulk(env.ctx, tx, uid)
		if err != nil {
			return nil, err
		}
		return func() error {
			return env.print(cmd.JSON, map[string]any{"withdrawn": count}, func(w io.Writer) {
				fmt.Fprintf(w, "%d withdrawn\n", count)
			})
		}, env.auditBulk(s, tx, uid, "cancel", "")
	})
}

// moveBulk changes a bulk re-send and prints it as it is then.
func (env *environment) moveBulk(
	text string, asJSON bool,
	move func(ctx context.Context, s *app.Services, tx *postgres.Tx, uid uuid.UUID) error,
) error {
	uid, err := parseUID("the bulk re-send", text)
	if err != nil {
		return err
	}
	return env.change(func(s *app.Services, tx *postgres.Tx) (func() error, error) {
		return func() error { return env.printBulk(s, uid, asJSON) }, move(env.ctx, s, tx, uid)
	})
}

type bulkCreateCmd struct {
	UIDs    []string `arg:"" optional:"" name:"uid" help:"Deliveries to send again."`
	Partner string   `help:"Whose; found by itself where the choice has one partner only." placeholder:"UID"`
	Recover bool     `help:"What failed for --subscription since --since and did not arrive later."`
	Replay  bool     `help:"Events of the range that --subscription wants and never got."`
	deliveryFlags
	SkipNewer     bool   `help:"Leave out those with a newer delivered event of the application."`
	SkipDelivered bool   `help:"Leave out what was delivered already."`
	Pace          int    `default:"10" help:"Deliveries a second to one subscription, at most 500."`
	Confirm       bool   `help:"Begin to send at once; needs --reason."`
	Reason        string `help:"Why, for the record." placeholder:"TEXT"`
	Count         int    `help:"With --confirm: how many it must be; required above 1,000." placeholder:"N"`
	JSON          bool   `name:"json" help:"Print one JSON document."`
}

// Run keeps a draft and prints its plan, or begins to send it.
func (cmd bulkCreateCmd) Run(env *environment) error {
	scope, err := cmd.scope()
	if err != nil {
		return err
	}
	if cmd.Confirm && cmd.Reason == "" {
		return usagef("--confirm needs --reason")
	}
	options := webhook.BulkOptions{
		SkipNewer: cmd.SkipNewer, SkipDelivered: cmd.SkipDelivered, Pace: cmd.Pace,
	}
	return env.change(func(s *app.Services, tx *postgres.Tx) (func() error, error) {
		if scope.PartnerUID, err = cmd.partner(env, s, scope); err != nil {
			return nil, err
		}
		uid, err := s.Webhooks.DraftBulk(env.ctx, tx, scope, options, cliActor)
		if err != nil {
			return nil, byFlags(err)
		}
		if err := env.auditBulk(s, tx, uid, "draft", cmd.Reason); err != nil {
			return nil, err
		}
		after := func() error { return env.printBulk(s, uid, cmd.JSON) }
		if !cmd.Confirm {
			return after, nil
		}
		_, err = s.Webhooks.ConfirmBulk(env.ctx, tx, uid, webhook.BulkConsent{
			By: cliActor, Reason: cmd.Reason, Count: cmd.Count,
		})
		if err != nil {
			return nil, byFlags(err)
		}
		return after, env.auditBulk(s, tx, uid, "confirm", cmd.Reason)
	})
}

// scope reads what is chosen, but not whose it is.
func (cmd bulkCreateCmd) scope() (webhook.BulkScope, error) {
	var scope webhook.BulkScope
	filter, err := cmd.filter()
	if err != nil {
		return scope, err
	}
	if scope.Deliveries, err = parseUIDs("the delivery", cmd.UIDs); err != nil {
		return scope, err
	}
	ranged, named := cmd.Recover || cmd.Replay, len(scope.Deliveries) > 0
	switch {
	case named && (ranged || !cmd.isZero()):
		return scope, usagef("name deliveries or choose them with flags, not both")
	case named:
		scope.Kind = webhook.BulkSelection
	case ranged:
		return cmd.ranged(filter)
	case cmd.isZero():
		return scope, usagef("name deliveries, or choose them with --subscription, --state, " +
			"--since and --until, --recover or --replay")
	default:
		scope.Kind, scope.Filter = webhook.BulkFilter, filter
	}
	return scope, nil
}

// ranged is the scope of a recovery or a replay.
func (cmd bulkCreateCmd) ranged(filter webhook.DeliveryFilter) (webhook.BulkScope, error) {
	scope := webhook.BulkScope{
		Kind: webhook.BulkRecover, Subscriptions: []uuid.UUID{filter.SubscriptionUID},
		Since: filter.Since, Until: filter.Until,
	}
	if cmd.Replay {
		scope.Kind = webhook.BulkReplay
	}
	switch {
	case cmd.Recover && cmd.Replay:
		return scope, usagef("choose --recover or --replay, not both")
	case cmd.Subscription == "" || cmd.Since == "":
		return scope, usagef("--recover and --replay need --subscription and --since")
	case cmd.State != "" || cmd.Event != "" || cmd.Application != "":
		return scope, usagef("--recover and --replay take --subscription, --since and --until only")
	}
	return scope, nil
}

// partner finds whose the choice is, where it is one partner's only.
func (cmd bulkCreateCmd) partner(
	env *environment, s *app.Services, scope webhook.BulkScope,
) (uuid.UUID, error) {
	if cmd.Partner != "" {
		return parseUID("--partner", cmd.Partner)
	}
	subscription := cmp.Or(scope.Filter.SubscriptionUID, first(scope.Subscriptions))
	if subscription != uuid.Nil {
		found, err := s.Webhooks.Subscription(env.ctx, subscription)
		return found.PartnerUID, err
	}
	partners, err := partnersOf(env, s, scope)
	if err != nil {
		return uuid.Nil, err
	}
	if len(partners) != 1 {
		return uuid.Nil, usagef("the choice has deliveries of %d partners; name one with --partner",
			len(partners))
	}
	return partners[0], nil
}

// partnersOf lists whose deliveries are chosen.
func partnersOf(env *environment, s *app.Services, scope webhook.BulkScope) ([]uuid.UUID, error) {
	var partners []uuid.UUID
	if scope.Kind == webhook.BulkSelection {
		owners, err := s.Webhooks.OwnersOf(env.ctx, scope.Deliveries)
		for _, owner := range owners {
			partners = append(partners, owner.UID)
		}
		return partners, err
	}
	shares, err := s.Webhooks.PartnersOf(env.ctx, scope.Filter)
	for _, share := range shares {
		partners = append(partners, share.UID)
	}
	return partners, err
}

// first returns the first identifier, nil without any.
func first(uids []uuid.UUID) uuid.UUID {
	if len(uids) == 0 {
		return uuid.Nil
	}
	return uids[0]
}
