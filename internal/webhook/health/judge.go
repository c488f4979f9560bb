package health

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

// System is the name recorded for what Drawbridge does by itself.
const System = "system"

// StateChange is a change of a subscription's state that its health caused.
type StateChange struct {
	Subscription uuid.UUID
	PartnerName  string
	subscription.Endpoint
	From, To subscription.State
	// Since and Failures describe the run of failures behind the change: the current one, or
	// the one that has ended.
	Since    time.Time
	Failures int
	// LastError is the text of the last failure.
	LastError string
	// AlertEmail is an additional address to notify, empty for none.
	AlertEmail string
}

// rule defines what counts as failing for one subscription.
type rule struct {
	window time.Duration
	events int
	pause  bool
}

// verdict returns the state that the health of a subscription calls for. since is when
// its run of failures began, nil without one, and events how many events failed in it. An
// active subscription becomes failing, or paused, once the run has lasted for the whole
// window and includes enough events; a failing one becomes active again with its first
// success. Paused and deleted ones stay as they are.
func (r rule) verdict(
	state subscription.State, since *time.Time, events int, now time.Time,
) subscription.State {
	switch {
	case state == subscription.StateFailing && since == nil:
		return subscription.StateActive
	case state != subscription.StateActive || since == nil:
		return state
	case now.Sub(*since) < r.window || events < r.events:
		return state
	case r.pause:
		return subscription.StatePaused
	}
	return subscription.StateFailing
}

// Candidates lists the subscriptions whose health may call for a change of state. It also
// clears the runs of failures of paused subscriptions: nothing is sent to them, so after
// they resume a new run begins.
func (s *Service) Candidates(ctx context.Context) ([]uuid.UUID, error) {
	_, err := s.DB.ExecContext(ctx, `
		UPDATE subscription_health h
		   SET failing_since = NULL,
		       failures = 0
		  FROM subscriptions s
		 WHERE s.subscription_uid = h.subscription_uid
		   AND s.state = 'paused'
		   AND h.failing_since IS NOT NULL`)
	if err != nil {
		return nil, fmt.Errorf("forgetting failures of paused subscriptions: %w", err)
	}
	var uids []uuid.UUID
	err = s.DB.SelectContext(ctx, &uids, `
		SELECT s.subscription_uid
		  FROM subscription_health h
		  JOIN subscriptions s USING (subscription_uid),
		       health_settings g
		 WHERE s.state = 'active'
		   AND h.failing_since <= $1::timestamptz
		           - make_interval(mins => coalesce(s.failing_minutes, g.failing_minutes))
		 UNION ALL
		SELECT s.subscription_uid
		  FROM subscriptions s
		  JOIN subscription_health h USING (subscription_uid)
		 WHERE s.state = 'failing'
		   AND h.failing_since IS NULL`, s.DB.Now().UTC())
	if err != nil {
		return nil, fmt.Errorf("looking for subscriptions that changed their health: %w", err)
	}
	return uids, nil
}

// Judge changes a subscription's state if its health calls for it, as a new version by
// the system, and returns the change; changed is false when there was nothing to do. If
// several processes judge at the same time, one makes the change and the others find it
// made. Error: NOT_FOUND.
func (s *Service) Judge(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID,
) (change StateChange, changed bool, err error) {
	row, err := subscription.Lock(ctx, tx, uid)
	if err != nil {
		return StateChange{}, false, err
	}
	file, err := loadCaseFile(ctx, tx, uid)
	if err != nil {
		return StateChange{}, false, err
	}
	since := file.since()
	events := 0 // with an attempt that failed since then, up to file.Events
	if since != nil {
		events, err = s.failedEvents(ctx, tx, uid, *since, file)
		if err != nil {
			return StateChange{}, false, err
		}
	}
	to := file.rule().verdict(row.State, since, events, tx.Now)
	if to == row.State {
		return StateChange{}, false, nil
	}
	change = file.change(row, to)
	row.State, row.UpdatedAt = to, tx.Now
	row.Version++
	edit := subscription.Edit{By: System, What: changeNames[to]}
	return change, true, subscription.Save(ctx, tx, row, edit)
}

// failedEvents counts the events with an attempt that failed since a time, up to
// file.Events: first those of deliveries created since a week before it. Older ones must
// have waited long, as during a pause: it searches for them, in every month, only if
// there were enough failures, and outside tx, which goes on without a late answer. Injected
// sandbox faults are no endpoint failures.
func (s *Service) failedEvents(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, since time.Time, file caseFile,
) (int, error) {
	look := func(ctx context.Context, on postgres.Querier, which string) (count int, err error) {
		err = on.GetContext(ctx, &count, `
			SELECT count(*)
			  FROM (SELECT DISTINCT d.event_uid
			          FROM deliveries d
			          JOIN attempts a ON a.delivery_uid = d.delivery_uid
			                         AND a.delivery_created_at = d.created_at
			         WHERE d.subscription_uid = $1
			           AND NOT d.test
			           AND `+which+`
			           AND a.error_class IS NOT NULL
			           AND a.started_at + a.duration_us * interval '1 microsecond' >= $2
			           AND NOT (a.number = 1
			                    AND EXISTS (SELECT
			                                  FROM sandbox_fault_uses u
			                                 WHERE u.delivery_uid = a.delivery_uid))
			         LIMIT $3) AS failed`, uid, since, file.Events)
		return count, err
	}
	count, err := look(ctx, tx, `d.created_at >= $2::timestamptz - interval '7 days'`)
	if err == nil && count < file.Events && file.Failures >= file.Events {
		within, cancel := context.WithTimeout(ctx, oldScanTimeout)
		defer cancel()
		var all int
		// The clocks that measure an attempt and its record may differ a little.
		all, err = look(within, s.DB, `(d.state IN ('pending', 'retrying')
			OR d.finished_at >= $2::timestamptz - interval '5 seconds')`)
		if err != nil && within.Err() != nil && ctx.Err() == nil {
			return count, nil // without an answer in time nothing is changed
		}
		count = max(count, all)
	}
	if err != nil {
		return 0, fmt.Errorf("counting the failed events of subscription %s: %w", uid, err)
	}
	return count, nil
}

// changeNames are the version descriptions of state changes caused by health.
var changeNames = map[subscription.State]string{
	subscription.StateFailing: "failing", subscription.StateActive: subscription.ChangeRecovered,
	subscription.StatePaused: subscription.ChangePausedAfterFailing,
}

// caseFile holds the data by which the state of a subscription is judged.
type caseFile struct {
	streak
	Minutes     int        `db:"minutes"`
	Events      int        `db:"events"`
	OnFailing   string     `db:"on_failing"`
	AlertEmail  string     `db:"alert_email"`
	PartnerName string     `db:"partner_name"`
	ResumedAt   *time.Time `db:"resumed_at"`
	// MovedAt is when it got its current URL, zero if it never had another.
	MovedAt time.Time `db:"-"`
}

func loadCaseFile(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) (caseFile, error) {
	var file caseFile
	err := tx.GetContext(ctx, &file, `
		SELECT s.subscription_uid, h.last_success_at, h.last_failure_at, h.last_http_status,
		       h.last_error_class, coalesce(h.last_error, '') AS last_error, h.failing_since,
		       coalesce(h.failures, 0) AS failures, h.former_since,
		       coalesce(h.former_failures, 0) AS former_failures,
		       coalesce(s.failing_minutes, g.failing_minutes) AS minutes,
		       coalesce(s.failing_events, g.failing_events) AS events, s.on_failing,
		       s.alert_email, p.name AS partner_name,
		       (SELECT max(v.changed_at)
		          FROM subscription_versions v
		         WHERE v.subscription_uid = s.subscription_uid
		           AND v.change = 'active') AS resumed_at
		  FROM subscriptions s
		  JOIN partners p USING (partner_uid)
		  LEFT JOIN subscription_health h USING (subscription_uid),
		       health_settings g
		 WHERE s.subscription_uid = $1`, uid)
	if err != nil {
		return caseFile{}, fmt.Errorf("loading the health of subscription %s: %w", uid, err)
	}
	moves, err := subscription.Moves(ctx, tx, uid)
	file.MovedAt = moves[uid].At
	return file, err
}

// since is when the run of failures began, or the last resumption or change of URL if later.
func (f caseFile) since() *time.Time {
	since := f.Since
	for _, again := range []time.Time{postgres.OrZero(f.ResumedAt), f.MovedAt} {
		if since != nil && again.After(*since) {
			since = &again
		}
	}
	return since
}

func (f caseFile) rule() rule {
	return rule{
		window: time.Duration(f.Minutes) * time.Minute, events: f.Events,
		pause: f.OnFailing == subscription.OnFailingPause,
	}
}

func (f caseFile) change(row subscription.Row, to subscription.State) StateChange {
	change := StateChange{
		Subscription: row.UID, PartnerName: f.PartnerName,
		Endpoint: row.Endpoint(), From: row.State, To: to,
		Since: postgres.OrZero(f.Since), Failures: f.Failures, LastError: f.LastError,
		AlertEmail: f.AlertEmail,
	}
	if to == subscription.StateActive {
		change.Since, change.Failures = postgres.OrZero(f.FormerSince), f.FormerFailures
	}
	return change
}
