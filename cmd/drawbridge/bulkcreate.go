package main

import (
	"cmp"

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

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
