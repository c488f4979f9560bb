package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
)

type bulkCmd struct {
	Create  bulkCreateCmd  `cmd:"" help:"Choose what to send again and print the plan; nothing is sent without --confirm."`
	List    bulkListCmd    `cmd:"" help:"List bulk re-sends, newest first."`
	Show    bulkShowCmd    `cmd:"" help:"Show a bulk re-send: its plan, or its progress."`
	Confirm bulkConfirmCmd `cmd:"" help:"Freeze the deliveries of a draft and start sending them."`
	Pause   bulkPauseCmd   `cmd:"" help:"Pause a bulk re-send; deliveries that have not been sent are held back."`
	Resume  bulkResumeCmd  `cmd:"" help:"Resume a paused bulk re-send."`
	Cancel  bulkCancelCmd  `cmd:"" help:"Cancel a bulk re-send: withdraw what has not been sent, or discard the draft."`
}

// bulkJSON is a bulk re-send as commands print it.
type bulkJSON struct {
	UID           uuid.UUID   `json:"bulk_uid"`
	Partner       uuid.UUID   `json:"partner_uid"`
	Kind          bulk.Kind   `json:"kind"`
	State         bulk.State  `json:"state"`
	Pace          int         `json:"pace"`
	SkipNewer     bool        `json:"skip_newer"`
	SkipDelivered bool        `json:"skip_delivered"`
	Reason        *string     `json:"reason"`
	CreatedBy     string      `json:"created_by"`
	CreatedAt     time.Time   `json:"created_at"`
	ConfirmedAt   *time.Time  `json:"confirmed_at"`
	EndedAt       *time.Time  `json:"ended_at"`
	Total         int         `json:"total"`
	Counts        bulk.Counts `json:"counts"`
}

func newBulkJSON(b bulk.Resend) bulkJSON {
	return bulkJSON{
		UID: b.UID, Partner: b.Scope.PartnerUID, Kind: b.Scope.Kind, State: b.State,
		Pace: b.Options.Pace, SkipNewer: b.Options.SkipNewer,
		SkipDelivered: b.Options.SkipDelivered, Reason: orNull(b.Reason), CreatedBy: b.CreatedBy,
		CreatedAt: b.CreatedAt.UTC(), ConfirmedAt: orNull(b.ConfirmedAt.UTC()),
		EndedAt: orNull(b.EndedAt.UTC()), Total: b.Counts.Total(), Counts: b.Counts,
	}
}

// planJSON is what confirming a draft would do now.
type planJSON struct {
	Total         int                     `json:"total"`
	Skipped       map[bulk.SkipReason]int `json:"skipped"`
	Subscriptions []planTargetJSON        `json:"subscriptions"`
	Risks         map[string]int          `json:"risks"`
	Seconds       float64                 `json:"seconds"`
}

type planTargetJSON struct {
	UID    uuid.UUID                 `json:"subscription_uid"`
	Name   *string                   `json:"name"`
	URL    string                    `json:"url"`
	State  subscription.State        `json:"state"`
	Total  int                       `json:"total"`
	Events map[lending.EventKind]int `json:"events"`
}

// bulkDetailJSON is a bulk re-send with its plan, while it is a draft.
type bulkDetailJSON struct {
	bulkJSON
	Plan *planJSON `json:"plan"`
}

// bulkOutput is the current state of one bulk re-send.
func (env *environment) bulkOutput(s *app.Services, uid uuid.UUID) (output, error) {
	resend, err := s.Webhooks.Bulk.Get(env.ctx, uid)
	printed := bulkDetailJSON{bulkJSON: newBulkJSON(resend)}
	var plan bulk.Plan
	if resend.State == bulk.StateDraft {
		if plan, err = s.Webhooks.Bulk.Plan(env.ctx, uid); err != nil {
			return output{}, err
		}
		printed.Plan = &planJSON{
			Total: plan.Total, Skipped: plan.Skipped, Subscriptions: []planTargetJSON{},
			Seconds: plan.Takes(resend.Options.Pace).Seconds(),
			Risks: map[string]int{
				"delivered": plan.Risks.Delivered, "newer_delivered": plan.Risks.Newer,
				"outcome_unknown": plan.Risks.Unknown, "configuration_changed": plan.Risks.Changed,
				"subscription_paused":  plan.Risks.Paused,
				"subscription_failing": plan.Risks.Failing + plan.Risks.Untried,
			},
		}
		for _, target := range plan.Targets {
			printed.Plan.Subscriptions = append(printed.Plan.Subscriptions, planTargetJSON{
				target.SubscriptionUID, orNull(target.SubscriptionName), target.URL, target.State,
				target.Total, target.Events,
			})
		}
	}
	return output{printed, func(w io.Writer) {
		aligned(func(w io.Writer) { printBulkLine(w, resend) })(w)
		if printed.Plan == nil {
			return
		}
		fmt.Fprintf(w, "would send %d, in about %.0f s\n", plan.Total, printed.Plan.Seconds)
		for _, target := range plan.Targets {
			fmt.Fprintf(w, "  %d to %s (%s)\n", target.Total, target.Label(), target.State)
		}
		for reason, count := range plan.Skipped {
			fmt.Fprintf(w, "  would skip %d: %s\n", count, reason)
		}
		for risk, count := range printed.Plan.Risks {
			if count > 0 {
				fmt.Fprintf(w, "  risk for %d: %s\n", count, risk)
			}
		}
	}}, err
}

func printBulkLine(w io.Writer, b bulk.Resend) {
	c := b.Counts
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d waiting, %d under way, %d delivered, %d failed, "+
		"%d cancelled, %d skipped\n", b.UID, b.CreatedAt.UTC().Format(time.RFC3339), b.State,
		b.Scope.Kind, c.Waiting, c.Sent, c.Delivered, c.Failed, c.Cancelled, c.Skipped)
}

type bulkListCmd struct {
	Partner string `help:"Only this partner's." placeholder:"UID"`
	State   string `help:"draft, running, paused, cancelled or finished." placeholder:"STATE"`
	listFlags
}

// Run lists bulk re-sends.
func (cmd bulkListCmd) Run(env *environment) error {
	filter := bulk.Filter{
		State: bulk.State(cmd.State), PartnerUID: env.optionalUID("--partner", cmd.Partner),
	}
	switch filter.State {
	case "", bulk.StateDraft, bulk.StateRunning, bulk.StatePaused, bulk.StateCancelled,
		bulk.StateFinished:
	default:
		env.refusef("--state is %q; it must be draft, running, paused, cancelled or finished", cmd.State)
	}
	return rowsOf("bulk_resends", newBulkJSON,
		"BULK RE-SEND\tCREATED\tSTATE\tSCOPE\tDELIVERIES", printBulkLine).page(env, cmd.listFlags,
		func(s *app.Services, page postgres.Paging) ([]bulk.Resend, postgres.Cursor, error) {
			return s.Webhooks.Bulk.List(env.ctx, filter, page)
		})
}

type bulkShowCmd struct {
	UID  string `arg:"" help:"Bulk re-send."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Run shows one bulk re-send.
func (cmd bulkShowCmd) Run(env *environment) error {
	uid := env.uid("the bulk re-send", cmd.UID)
	return env.show(cmd.JSON, func(s *app.Services) (output, error) {
		return env.bulkOutput(s, uid)
	})
}

// moveBulk changes the state of a bulk re-send and prints the result.
func (cmd bulkShowCmd) moveBulk(
	env *environment, action, reason string, move func(
		s *bulk.Service, ctx context.Context, tx *postgres.Tx, uid uuid.UUID,
	) error,
) error {
	uid := env.uid("the bulk re-send", cmd.UID)
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		recorded, err := env.bulkEntry(s, tx, uid, action, func() error {
			return move(s.Webhooks.Bulk, env.ctx, tx, uid)
		})
		recorded.Reason = reason
		return done{
			entries: []operator.Entry{recorded},
			after:   func() (output, error) { return env.bulkOutput(s, uid) },
		}, err
	})
}

// bulkEntry changes the state of a bulk re-send and returns an audit log entry with the old and the
// new state; a discarded draft has no new state.
func (env *environment) bulkEntry(
	s *app.Services, tx *postgres.Tx, uid uuid.UUID, action string, move func() error,
) (operator.Entry, error) {
	before, err := s.Webhooks.Bulk.Lock(env.ctx, tx, uid)
	if err == nil {
		err = move()
	}
	if err != nil {
		return operator.Entry{}, err
	}
	entry := changeEntry(action, uid.String(), "", map[string]any{"state": before.State}, nil)
	switch after, err := s.Webhooks.Bulk.Lock(env.ctx, tx, uid); {
	case err == nil:
		entry.After = map[string]any{"state": after.State}
	case lending.ErrorCode(err) != lending.CodeNotFound:
		return operator.Entry{}, err
	}
	return entry, nil
}

type bulkConfirmCmd struct {
	UID    string `arg:"" help:"Bulk re-send."`
	Reason string `required:"" help:"Why, for the record." placeholder:"TEXT"`
	Count  int    `help:"Expected number of deliveries; required above 1,000." placeholder:"N"`
	JSON   bool   `name:"json" help:"Print one JSON document."`
}

// Run confirms a draft.
func (cmd bulkConfirmCmd) Run(env *environment) error {
	return bulkShowCmd{cmd.UID, cmd.JSON}.moveBulk(env, "bulk_resend.confirm", cmd.Reason, func(
		s *bulk.Service, ctx context.Context, tx *postgres.Tx, uid uuid.UUID,
	) error {
		_, err := s.Confirm(ctx, tx, uid, bulk.Consent{
			By: cliActor, Reason: cmd.Reason, Count: cmd.Count,
		})
		return byFlags(err)
	})
}

type bulkPauseCmd struct{ bulkShowCmd }

// Run pauses a bulk re-send.
func (cmd bulkPauseCmd) Run(env *environment) error {
	return cmd.moveBulk(env, "bulk_resend.pause", "", (*bulk.Service).Pause)
}

type bulkResumeCmd struct{ bulkShowCmd }

// Run resumes a bulk re-send.
func (cmd bulkResumeCmd) Run(env *environment) error {
	return cmd.moveBulk(env, "bulk_resend.resume", "", (*bulk.Service).Resume)
}

type bulkCancelCmd struct{ bulkShowCmd }

// Run cancels a bulk re-send and prints how many deliveries were withdrawn.
func (cmd bulkCancelCmd) Run(env *environment) error {
	uid := env.uid("the bulk re-send", cmd.UID)
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		var count int
		recorded, err := env.bulkEntry(s, tx, uid, "bulk_resend.cancel", func() (err error) {
			count, err = s.Webhooks.Bulk.Cancel(env.ctx, tx, uid)
			return err
		})
		return did(recorded, output{
			map[string]any{"withdrawn": count},
			func(w io.Writer) { fmt.Fprintf(w, "%d withdrawn\n", count) },
		}), err
	})
}

type bulkCreateCmd struct {
	UIDs    []string `arg:"" optional:"" name:"uid" help:"Deliveries to send again."`
	Partner string   `help:"Partner; may be omitted if everything chosen belongs to one." placeholder:"UID"`
	Recover bool     `help:"Choose what failed for --subscription since --since and did not arrive later."`
	Replay  bool     `help:"Choose events of the time range that --subscription asks for and never got."`
	deliveryFlags
	SkipNewer     bool   `help:"Skip an event if a newer event of its application was delivered."`
	SkipDelivered bool   `help:"Skip events that were already delivered."`
	Pace          int    `default:"10" help:"Deliveries per second to one subscription, at most 500."`
	Confirm       bool   `help:"Start to send at once; needs --reason."`
	Reason        string `help:"Why, for the record." placeholder:"TEXT"`
	Count         int    `help:"With --confirm: expected number of deliveries; required above 1,000." placeholder:"N"`
	JSON          bool   `name:"json" help:"Print one JSON document."`
}

// Run saves a draft and prints its plan, or begins to send it.
func (cmd bulkCreateCmd) Run(env *environment) error {
	scope := cmd.scope(env)
	if cmd.Confirm && cmd.Reason == "" {
		env.refusef("--confirm needs --reason")
	}
	options := bulk.Options{
		SkipNewer: cmd.SkipNewer, SkipDelivered: cmd.SkipDelivered, Pace: cmd.Pace,
	}
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (made done, err error) {
		if scope.PartnerUID, err = cmd.partner(env, s, scope); err != nil {
			return done{}, err
		}
		uid, err := s.Webhooks.Bulk.Draft(env.ctx, tx, scope, options, cliActor)
		if err != nil {
			return done{}, byFlags(err)
		}
		made.entries = []operator.Entry{entry("bulk_resend.draft", uid.String(), cmd.Reason, nil)}
		made.after = func() (output, error) { return env.bulkOutput(s, uid) }
		if cmd.Confirm {
			var recorded operator.Entry
			recorded, err = env.bulkEntry(s, tx, uid, "bulk_resend.confirm", func() error {
				_, err := s.Webhooks.Bulk.Confirm(env.ctx, tx, uid, bulk.Consent{
					By: cliActor, Reason: cmd.Reason, Count: cmd.Count,
				})
				return err
			})
			recorded.Reason = cmd.Reason
			made.entries = append(made.entries, recorded)
		}
		return made, byFlags(err)
	})
}

// scope reads the filters of the command, except the partner.
func (cmd bulkCreateCmd) scope(env *environment) bulk.Scope {
	filter := cmd.filter(env)
	uids := env.uids("the delivery", cmd.UIDs)
	ranged, filtered := cmd.Recover || cmd.Replay, cmd.deliveryFlags != deliveryFlags{}
	switch {
	case len(uids) > 0 && (ranged || filtered):
		env.refusef("name deliveries or choose them with flags, not both")
	case len(uids) > 0:
		return bulk.Scope{Kind: bulk.KindSelection, Deliveries: uids}
	case ranged:
		return cmd.ranged(env, filter)
	case !filtered:
		env.refusef("name deliveries, or choose them with --subscription, --state, " +
			"--since and --until, --recover or --replay")
	}
	return bulk.Scope{Kind: bulk.KindFilter, Filter: filter}
}

// ranged is the scope of a recovery or a replay.
func (cmd bulkCreateCmd) ranged(env *environment, filter delivery.Filter) bulk.Scope {
	switch {
	case cmd.Recover && cmd.Replay:
		env.refusef("choose --recover or --replay, not both")
	case cmd.Subscription == "" || cmd.Since == "":
		env.refusef("--recover and --replay need --subscription and --since")
	case cmd.State != "" || cmd.Event != "" || cmd.Application != "":
		env.refusef("--recover and --replay take --subscription, --since and --until only")
	}
	kind := bulk.KindRecover
	if cmd.Replay {
		kind = bulk.KindReplay
	}
	return bulk.Scope{
		Kind: kind, Subscriptions: []uuid.UUID{filter.SubscriptionUID},
		Since: filter.Since, Until: filter.Until,
	}
}

// partner finds the partner of the chosen deliveries; they must belong to one partner only.
func (cmd bulkCreateCmd) partner(
	env *environment, s *app.Services, scope bulk.Scope,
) (uuid.UUID, error) {
	if cmd.Partner != "" {
		return env.uid("--partner", cmd.Partner), env.usageErr
	}
	subscribed := scope.Filter.SubscriptionUID
	if len(scope.Subscriptions) > 0 {
		subscribed = scope.Subscriptions[0]
	}
	if subscribed != uuid.Nil {
		found, err := s.Webhooks.Subscriptions.Get(env.ctx, subscribed)
		return found.PartnerUID, err
	}
	var partners []uuid.UUID
	if scope.Kind == bulk.KindSelection {
		owners, err := s.Webhooks.Bulk.OwnersOf(env.ctx, scope.Deliveries)
		if err != nil {
			return uuid.Nil, err
		}
		for _, owner := range owners {
			partners = append(partners, owner.UID)
		}
	} else {
		shares, err := s.Webhooks.Bulk.PartnersOf(env.ctx, scope.Filter)
		if err != nil {
			return uuid.Nil, err
		}
		for _, share := range shares {
			partners = append(partners, share.UID)
		}
	}
	if len(partners) != 1 {
		return uuid.Nil, usagef("the chosen deliveries belong to %d partners; name one with --partner",
			len(partners))
	}
	return partners[0], nil
}
