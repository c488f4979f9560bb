package bulk

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
)

// Plan is the result that confirming a draft now would have.
type Plan struct {
	// Total is the exact count of new deliveries.
	Total int
	// Targets are the subscriptions that get new deliveries, the largest share first.
	Targets []PlanTarget
	// Skipped counts what is left out, by reason.
	Skipped map[SkipReason]int
	// Oldest and Newest are the times of the events.
	Oldest, Newest time.Time
	Risks          Risks
}

// PlanTarget is a subscription's part of a plan.
type PlanTarget struct {
	SubscriptionUID uuid.UUID
	subscription.Endpoint
	State subscription.State
	Total int
	// Events counts deliveries by kind of event.
	Events map[lending.EventKind]int
}

// Risks count the deliveries of a plan that deserve a second thought.
type Risks struct {
	// Delivered have arrived already, Newer were overtaken by a delivered later event of
	// their application, Unknown may have arrived.
	Delivered, Newer, Unknown int
	// Changed were last attempted under an older version of the subscription.
	Changed int
	// Paused and Failing go to subscriptions in that state, Untried to failing ones whose
	// URL has changed since and to which nothing has been sent yet.
	Paused, Failing, Untried int
}

// Skips is how many deliveries are left out.
func (p Plan) Skips() int {
	total := 0
	for _, count := range p.Skipped {
		total += count
	}
	return total
}

// Takes is how long sending to the target with the largest share takes at the pace.
func (p Plan) Takes(pace int) time.Duration {
	if len(p.Targets) == 0 {
		return 0
	}
	return time.Duration(p.Targets[0].Total) * time.Second / time.Duration(pace)
}

// planRow counts the members of a plan that have the same key fields.
type planRow struct {
	SubscriptionUID uuid.UUID `db:"subscription_uid"`
	subscription.Endpoint
	State     subscription.State `db:"subscription_state"`
	Event     lending.EventKind  `db:"event"`
	Skip      *SkipReason        `db:"skip_reason"`
	Count     int                `db:"count"`
	Delivered int                `db:"delivered"`
	Newer     int                `db:"newer"`
	Unknown   int                `db:"unknown"`
	Changed   int                `db:"changed"`
	Oldest    time.Time          `db:"oldest"`
	Newest    time.Time          `db:"newest"`
}

// Plan returns what confirming a draft now would do; it changes nothing. Errors:
// NOT_FOUND, INVALID_STATE once it was confirmed, VALIDATION_ERROR for more than
// MaxItems.
func (s *Service) Plan(ctx context.Context, uid uuid.UUID) (Plan, error) {
	row, err := get(ctx, s.DB, uid)
	if err != nil {
		return Plan{}, err
	}
	if row.State != StateDraft {
		return Plan{}, errState(row, "planned", "get a plan")
	}
	if err := row.checkSize(ctx, s.DB); err != nil {
		return Plan{}, err
	}
	chosen, args := row.chosen(true)
	var rows []planRow
	err = s.DB.SelectContext(ctx, &rows, chosen+`
		SELECT j.subscription_uid, `+subscription.EndpointColumns+`, j.subscription_state, j.event,
		       j.skip_reason,
		       count(*) AS count,
		       count(*) FILTER (WHERE j.delivered) AS delivered,
		       count(*) FILTER (WHERE j.newer) AS newer,
		       count(*) FILTER (WHERE j.unknown) AS unknown,
		       count(*) FILTER (WHERE j.changed) AS changed,
		       min(j.event_at) AS oldest,
		       max(j.event_at) AS newest
		  FROM judged j
		  JOIN subscriptions s USING (subscription_uid)
		 GROUP BY 1, 2, 3, 4, 5, 6
		 ORDER BY 1, 5`, args...)
	if err != nil {
		return Plan{}, fmt.Errorf("planning a bulk re-send: %w", err)
	}
	plan, err := gather(rows)
	if err != nil || plan.Risks.Failing == 0 {
		return plan, err
	}
	err = plan.findUntried(ctx, s.DB)
	return plan, err
}

// findUntried moves from Failing to Untried the subscriptions of which only the former URL failed.
func (p *Plan) findUntried(ctx context.Context, db sqlx.QueryerContext) error {
	var failing []uuid.UUID
	for _, target := range p.Targets {
		if target.State == subscription.StateFailing {
			failing = append(failing, target.SubscriptionUID)
		}
	}
	moves, err := subscription.Moves(ctx, db, failing...)
	for _, target := range p.Targets {
		if moves[target.SubscriptionUID].Untried {
			p.Risks.Failing -= target.Total
			p.Risks.Untried += target.Total
		}
	}
	return err
}

// gather sums up the rows of a plan.
func gather(rows []planRow) (Plan, error) {
	plan := Plan{Skipped: map[SkipReason]int{}}
	for _, row := range rows {
		if row.Skip != nil {
			plan.Skipped[*row.Skip] += row.Count
			continue
		}
		plan.Total += row.Count
		risks := &plan.Risks
		risks.Delivered += row.Delivered
		risks.Newer += row.Newer
		risks.Unknown += row.Unknown
		risks.Changed += row.Changed
		switch row.State {
		case subscription.StatePaused:
			risks.Paused += row.Count
		case subscription.StateFailing:
			risks.Failing += row.Count
		case subscription.StateActive, subscription.StateDeleted:
		}
		plan.target(row)
		if plan.Oldest.IsZero() || row.Oldest.Before(plan.Oldest) {
			plan.Oldest = row.Oldest
		}
		if row.Newest.After(plan.Newest) {
			plan.Newest = row.Newest
		}
	}
	if all := plan.Total + plan.Skips(); all > MaxItems {
		return Plan{}, errTooLarge()
	}
	slices.SortStableFunc(plan.Targets, func(a, b PlanTarget) int { return b.Total - a.Total })
	return plan, nil
}

// target adds a row to its subscription; the rows of one must be adjacent.
func (p *Plan) target(row planRow) {
	if last := len(p.Targets) - 1; last < 0 || p.Targets[last].SubscriptionUID != row.SubscriptionUID {
		p.Targets = append(p.Targets, PlanTarget{
			SubscriptionUID: row.SubscriptionUID, Endpoint: row.Endpoint, State: row.State,
			Events: map[lending.EventKind]int{},
		})
	}
	target := &p.Targets[len(p.Targets)-1]
	target.Total += row.Count
	target.Events[row.Event] += row.Count
}

// checkSize refuses a set that is too large before anything is looked up for each member.
func (b Resend) checkSize(ctx context.Context, db sqlx.QueryerContext) error {
	matched, args := b.Scope.matched()
	var count int
	err := sqlx.GetContext(ctx, db, &count,
		`SELECT count(*) FROM (`+matched+fmt.Sprintf(` LIMIT %d`, MaxItems+1)+`) AS matching`, args...)
	if err != nil {
		return fmt.Errorf("counting what a bulk re-send holds: %w", err)
	}
	if count > MaxItems {
		return errTooLarge()
	}
	return nil
}

func errTooLarge() error {
	return lending.NewError(lending.CodeValidation,
		"more than %d deliveries match; narrow the time range or the filter", MaxItems)
}

// placed adds to each delivery that matched its place among those of its event to its
// subscription, newest first; whether another bulk re-send is about to send that event;
// and its rank among those of its application, oldest first.
//
// What other bulk re-sends are about to send is added as separate rows, without an
// application, and detected by a window function. The planner expects only a handful of
// matching rows, so a join would compare each with each.
const placed = `, placed AS (
			SELECT ` + matchedColumns + `, promised,
			       row_number() OVER (PARTITION BY event_uid, subscription_uid
			                          ORDER BY promised, created_at DESC, delivery_uid DESC) AS place,
			       bool_or(promised) OVER (PARTITION BY event_uid, subscription_uid) AS waits,
			       row_number() OVER (PARTITION BY application_uid, subscription_uid
			                          ORDER BY event_at) AS nth
			  FROM (SELECT ` + matchedColumns + `, false AS promised
			          FROM matched
			         UNION ALL
			        SELECT i.delivery_uid, i.delivery_created_at, i.subscription_uid, i.event_uid,
			               i.event_at, i.event, NULL, i.status, i.test, NULL, 0, false, true
			          FROM bulk_resends b
			          JOIN bulk_resend_items i USING (bulk_uid)
			         WHERE b.partner_uid = $1
			           AND b.state IN ('running', 'paused')
			           AND i.state = 'waiting') AS known
		)`

// flagged renders the properties that speak against each matching delivery, looked up row
// by row, or for all of an application at once. Mere risks are looked up only if the
// condition risks holds, overtaken events only if newer does. A row whose place is not
// the first is left out whatever is found.
func flagged(risks, newer string) string {
	return `, flagged AS (
			SELECT ` + matchedColumns + `, place,
			       coalesce(b.delivered, false) AS delivered,
			       coalesce(b.under_way, false) OR waits AS under_way,
			       coalesce(t.unknown, false) AS unknown,
			       coalesce(t.tried_version < version, false) AS changed,
			       coalesce(max(l.newest_at) OVER (PARTITION BY application_uid, subscription_uid)
			                > event_at, false) AS newer
			  FROM placed m
			 ` + gotEvent("m", "m.subscription_uid", "m.place = 1") + `
			 CROSS JOIN LATERAL (
			           SELECT bool_or(a.error_class = 'unknown') AS unknown,
			                  max(a.subscription_version) AS tried_version
			             FROM attempts a
			            WHERE ` + risks + `
			              AND m.place = 1
			              AND a.delivery_uid = m.delivery_uid
			              AND a.delivery_created_at = m.created_at) t
			 ` + gotNewest("m", "m.subscription_uid", "("+newer+") AND m.nth = 1") + `
			 WHERE NOT promised
		)`
}

// gotEvent joins whether a target, a subscription, got the event of a relation's row, or
// is about to. It uses the index on the event, as gotNewest uses that on the application:
// a condition on the subscription could make the planner scan everything that it got.
func gotEvent(relation, target, where string) string {
	return `CROSS JOIN LATERAL (
			           SELECT bool_or(d.state = 'delivered')
			                      FILTER (WHERE d.subscription_uid = ` + target + `) AS delivered,
			                  bool_or(d.state IN ('pending', 'retrying'))
			                      FILTER (WHERE d.subscription_uid = ` + target + `) AS under_way
			             FROM deliveries d
			            WHERE ` + where + `
			              AND d.event_uid = ` + relation + `.event_uid
			              AND d.created_at >= ` + relation + `.event_at - ` + aheadInterval + `) b`
}

// gotNewest joins the time of the newest event that a target got for the application of a
// relation's row.
func gotNewest(relation, target, where string) string {
	return `CROSS JOIN LATERAL (
			           SELECT max(d.event_at)
			                      FILTER (WHERE d.state = 'delivered'
			                                AND d.subscription_uid = ` + target + `) AS newest_at
			             FROM deliveries d
			            WHERE ` + where + `
			              AND d.application_uid = ` + relation + `.application_uid
			              AND d.created_at >= ` + relation + `.event_at - ` + aheadInterval + `) l`
}

// chosen renders, as the beginning of a statement, everything that the scope selects now,
// each with what speaks against it (the relation judged). Planning and freezing share it,
// so that they cannot disagree; only planning looks up the risks.
func (b Resend) chosen(risks bool) (string, []any) {
	matched, args := b.Scope.matched()
	c := postgres.Conditions{Args: args}
	skipDelivered := c.Bind(b.Options.SkipDelivered || b.Scope.Kind == KindRecover)
	skipNewer, asked := c.Bind(b.Options.SkipNewer), c.Bind(risks)
	return `
		WITH matched AS MATERIALIZED (` + matched + fmt.Sprintf(` LIMIT %d`, MaxItems+1) + `
		)` + placed + flagged(asked, asked+` OR `+skipNewer) + `, judged AS MATERIALIZED (
			SELECT ` + matchedColumns + `,
			       delivered, unknown, changed, newer,
			       CASE WHEN f.subscription_state = 'deleted' THEN 'subscription_deleted'
			            WHEN f.body_gone THEN 'body_removed'
			            WHEN f.place > 1 THEN 'duplicate'
			            WHEN f.under_way THEN 'under_way'
			            WHEN f.delivered AND ` + skipDelivered + `
			                THEN 'delivered_already'
			            WHEN f.newer AND ` + skipNewer + `
			                THEN 'newer_delivered'
			       END AS skip_reason
			  FROM flagged f
		)`, c.Args
}

// matchedColumns are the columns of matched.
const matchedColumns = `delivery_uid, created_at, subscription_uid, event_uid, event_at, event,
			       application_uid, status, test, subscription_state, version, body_gone`

// eventAhead bounds how much later than its deliveries an event's time can be;
// aheadInterval is the same in SQL.
const (
	eventAhead    = 24 * time.Hour
	aheadInterval = `interval '24 hours'`
)

// matched renders what the scope selects before anything is left out. Its first argument
// is the partner, to which every table that it reads is restricted.
func (b Scope) matched() (string, []any) {
	if b.Kind == KindReplay {
		return b.missed()
	}
	var c postgres.Conditions
	c.Add(`s.partner_uid = ?`, b.PartnerUID)
	filter := b.Filter
	switch b.Kind {
	case KindSelection:
		filter = delivery.Filter{}
		c.Add(`d.delivery_uid = ANY (?)`, pq.Array(b.Deliveries))
	case KindRecover:
		filter = delivery.Filter{State: delivery.StateFailed, Since: b.Since, Until: b.Until}
		c.Add(`NOT d.test`)
		c.Add(`d.subscription_uid = ANY (?)`, pq.Array(b.Subscriptions))
		if b.ByEvent {
			// A delivery can be a little older than its event, whose time is moved on past that of
			// the one before. Its creation time only limits the search to few partitions.
			filter.Since, filter.Until = b.Since.Add(-eventAhead), time.Time{}
			c.Add(`d.event_at >= ? AND d.event_at < ?`, b.Since, b.Until)
		}
		c.When(len(b.Merchants) > 0, `e.merchant_uid = ANY (?)`, pq.Array(b.Merchants))
	case KindFilter, KindReplay:
		c.When(filter.PartnerUID != uuid.Nil, `s.partner_uid = ?`, filter.PartnerUID)
	}
	filter.Narrow(&c)
	return `
			SELECT d.delivery_uid, d.created_at, d.subscription_uid, d.event_uid, d.event_at,
			       d.event, d.application_uid, d.status, d.test, s.state AS subscription_state,
			       s.version,
			       coalesce(e.body_removed_at IS NOT NULL OR e.event_uid IS NULL, true) AS body_gone
			  FROM deliveries d
			  JOIN subscriptions s USING (subscription_uid)
			` + eventByKey("d", "e.partner_uid = s.partner_uid") + c.Where(), c.Args
}

// eventByKey joins the event e of each row of a relation, if the condition holds. It is looked
// up by its key, and only then checked for its partner: without statistics, the planner takes
// all events of the partner to be equally likely, and would read them for each row.
func eventByKey(relation, condition string) string {
	return `LEFT JOIN LATERAL (
			           SELECT event_uid, partner_uid, merchant_uid, body_removed_at
			             FROM events
			            WHERE event_uid = ` + relation + `.event_uid
			              AND occurred_at = ` + relation + `.event_at
			            LIMIT 1) e ON ` + condition
}

// missed renders the events that the subscriptions want and never got.
func (b Scope) missed() (string, []any) {
	var c postgres.Conditions
	c.Add(`s.partner_uid = ?`, b.PartnerUID)
	c.Add(`s.subscription_uid = ANY (?)`, pq.Array(b.Subscriptions))
	c.Add(`e.merchant_uid IS NOT NULL`)
	c.When(b.EventUID != uuid.Nil, `e.event_uid = ?`, b.EventUID)
	c.When(b.EventUID == uuid.Nil, `e.occurred_at >= ? AND e.occurred_at < ?`, b.Since, b.Until)
	return `
			SELECT NULL::uuid AS delivery_uid, NULL::timestamptz AS created_at,
			       s.subscription_uid, e.event_uid, e.occurred_at AS event_at, e.kind AS event,
			       e.application_uid, e.status, false AS test, s.state AS subscription_state,
			       s.version,
			       e.body_removed_at IS NOT NULL AS body_gone
			  FROM subscriptions s
			  JOIN events e ON e.partner_uid = s.partner_uid` + c.Where() + wanted + missing, c.Args
}

// missing tests whether a subscription s neither got an event e nor is about to. It is
// looked up for each event: as a join it would read all deliveries there are.
const missing = `
			   AND (SELECT bool_or(d.subscription_uid = s.subscription_uid)
			          FROM deliveries d
			         WHERE d.event_uid = e.event_uid
			           AND d.created_at >= e.occurred_at - ` + aheadInterval + `) IS NOT TRUE
			   AND NOT EXISTS (SELECT 1
			                     FROM outbox o
			                    WHERE o.event_uid = e.event_uid
			                      AND s.subscription_uid = ANY (o.owed))`

// wanted tests whether a subscription s gets an event e with its current configuration.
var wanted = `
			   AND (e.kind = ANY (s.events) OR s.events && ARRAY['all'] AND e.kind = ANY ('{` +
	lending.JoinNames(lending.SpecifiedEventKinds()) + `}'))
			   AND (s.all_merchants OR EXISTS (
			           SELECT 1
			             FROM subscription_merchants m
			            WHERE m.subscription_uid = s.subscription_uid
			              AND m.merchant_uid = e.merchant_uid))`

// PartnersOf counts, by partner, the deliveries that match a filter, up to MaxItems in
// all: a bulk re-send is limited to one partner.
func (s *Service) PartnersOf(ctx context.Context, filter delivery.Filter) ([]PartnerShare, error) {
	rows, args := filter.Newest(`d.subscription_uid`, MaxItems)
	var shares []PartnerShare
	err := s.DB.SelectContext(ctx, &shares, `
		SELECT p.partner_uid, p.name, count(*) AS count
		  FROM (`+rows+`) d
		  JOIN subscriptions s USING (subscription_uid)
		  JOIN partners p USING (partner_uid)
		 GROUP BY 1, 2
		 ORDER BY 3 DESC, 1`, args...)
	if err != nil {
		return nil, fmt.Errorf("counting deliveries by partner: %w", err)
	}
	return shares, nil
}

// PartnerShare is how many of the selected deliveries belong to one partner.
type PartnerShare struct {
	UID   uuid.UUID `db:"partner_uid"`
	Name  string    `db:"name"`
	Count int       `db:"count"`
}

// PartnerChoice holds the named deliveries of one partner.
type PartnerChoice struct {
	PartnerShare
	Deliveries []uuid.UUID
}

// OwnersOf groups deliveries by the partner that they belong to, the largest share first;
// those that do not exist are left out.
func (s *Service) OwnersOf(ctx context.Context, uids []uuid.UUID) ([]PartnerChoice, error) {
	var rows []struct {
		Delivery uuid.UUID `db:"delivery_uid"`
		PartnerShare
	}
	err := s.DB.SelectContext(ctx, &rows, `
		SELECT d.delivery_uid, p.partner_uid, p.name,
		       count(*) OVER (PARTITION BY p.partner_uid) AS count
		  FROM deliveries d
		  JOIN subscriptions s USING (subscription_uid)
		  JOIN partners p USING (partner_uid)
		 WHERE d.delivery_uid = ANY ($1)
		 ORDER BY 4 DESC, 2, 1`, pq.Array(uids))
	if err != nil {
		return nil, fmt.Errorf("looking up whose %d deliveries are: %w", len(uids), err)
	}
	var owners []PartnerChoice
	for _, row := range rows {
		if last := len(owners) - 1; last < 0 || owners[last].UID != row.UID {
			owners = append(owners, PartnerChoice{PartnerShare: row.PartnerShare})
		}
		owner := &owners[len(owners)-1]
		owner.Deliveries = append(owner.Deliveries, row.Delivery)
	}
	return owners, nil
}
