package subscription

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"drawbridge/internal/postgres"
)

const (
	// backlogBatch bounds how many deliveries a transaction changes, so that nobody waits
	// long for it or for its locks.
	backlogBatch = 1000
	// backlogRound bounds how many are read at once. Each read passes over all open deliveries.
	backlogRound = 50_000
)

// Inserter is the part of the queue's client that adds jobs to the caller's transaction;
// this package depends on the queue only through it.
type Inserter interface {
	InsertManyFastTx(
		ctx context.Context, tx *sql.Tx, params []river.InsertManyParams,
	) (int, error)
}

// BacklogQueue is the queue of jobs that adjust backlogs to their subscription.
const BacklogQueue = "backlog"

// BacklogArgs are the arguments of a job that adjusts the rest of a subscription's
// backlog to its state or, with Rebook, to its rate.
type BacklogArgs struct {
	SubscriptionUID uuid.UUID `json:"subscription_uid"`
	Rebook          bool      `json:"rebook,omitempty"`
}

// Kind names the job in the queue.
func (BacklogArgs) Kind() string { return "webhook_backlog" }

// InsertOpts puts the job in its queue. Jobs for a changed rate go before those for a
// state, because the old rate applies until they have run.
func (a BacklogArgs) InsertOpts() river.InsertOpts {
	options := river.InsertOpts{Queue: BacklogQueue, Priority: 2}
	if a.Rebook {
		options.Priority = 1
	}
	return options
}

var _ rivertype.JobArgs = BacklogArgs{}

// Backlogs adjusts the open deliveries of subscriptions to their states.
type Backlogs struct {
	DB *postgres.DB
	// Jobs takes the rest of a change that is too large for one transaction.
	Jobs Inserter
}

// follow adjusts the backlog of a subscription, which the caller has locked, to its
// state: parked deliveries fall due if it goes on, and open ones are cancelled if it was
// deleted. What is too much for one transaction is left to a job.
func (b *Backlogs) follow(ctx context.Context, tx *postgres.Tx, row Row) error {
	keys, err := backlogOf(ctx, tx, row, backlogBatch+1)
	if err != nil {
		return err
	}
	if len(keys) > backlogBatch {
		keys = keys[:backlogBatch]
		if err := b.leave(ctx, tx, BacklogArgs{SubscriptionUID: row.UID}); err != nil {
			return err
		}
	}
	return changeBacklog(ctx, tx, changeOf(row), keys)
}

// leave adds jobs for the work that is too much for one transaction.
func (b *Backlogs) leave(ctx context.Context, tx *postgres.Tx, all ...BacklogArgs) error {
	jobs := make([]river.InsertManyParams, len(all))
	for i, args := range all {
		jobs[i].Args = args
	}
	if _, err := b.Jobs.InsertManyFastTx(ctx, tx.Tx.Tx, jobs); err != nil {
		return fmt.Errorf("inserting the jobs of backlogs: %w", err)
	}
	return nil
}

// Follow adjusts all of a subscription's backlog to the state that it has by then.
func (b *Backlogs) Follow(ctx context.Context, uid uuid.UUID) error {
	for {
		var keys []backlogKey
		err := b.DB.InTx(ctx, func(tx *postgres.Tx) error {
			row, err := load(ctx, tx, uid, "")
			if err == nil {
				keys, err = backlogOf(ctx, tx, row, backlogRound)
			}
			return err
		})
		if err != nil || len(keys) == 0 {
			return err
		}
		for batch := range slices.Chunk(keys, backlogBatch) {
			err := b.DB.InTx(ctx, func(tx *postgres.Tx) error {
				row, err := load(ctx, tx, uid, ` FOR SHARE OF s`)
				if err != nil {
					return err
				}
				return changeBacklog(ctx, tx, changeOf(row), batch)
			})
			if err != nil {
				return err
			}
		}
	}
}

// Revive adds jobs for backlogs that do not follow their subscription because their job
// was deleted or given up, and returns how many.
func (b *Backlogs) Revive(ctx context.Context) (int, error) {
	var revived []BacklogArgs
	err := b.DB.InTx(ctx, func(tx *postgres.Tx) error {
		revived = nil
		var uids []uuid.UUID
		err := tx.SelectContext(ctx, &uids, `
			SELECT s.subscription_uid
			  FROM subscriptions s
			 WHERE (s.state = 'deleted' OR s.state <> 'paused' AND s.stopped_at IS NULL)
			   AND s.updated_at < $1::timestamptz - interval '1 hour'
			   AND EXISTS (
			           SELECT
			             FROM deliveries d
			            WHERE d.subscription_uid = s.subscription_uid
			              AND d.state IN ('pending', 'retrying')
			              AND (d.parked OR s.state = 'deleted'))`, tx.Now)
		if err != nil || len(uids) == 0 {
			return err
		}
		for _, uid := range uids {
			revived = append(revived, BacklogArgs{SubscriptionUID: uid})
		}
		return b.leave(ctx, tx, revived...)
	})
	if err != nil {
		return 0, fmt.Errorf("looking for backlogs without a job: %w", err)
	}
	return len(revived), nil
}

// backlogKey is the key of an open delivery.
type backlogKey struct {
	UID       uuid.UUID `db:"delivery_uid"`
	CreatedAt time.Time `db:"created_at"`
	// DueAt is when it is to fall due, for changes that set that time.
	DueAt time.Time `db:"due_at"`
}

// backlogChange is the change to make to a backlog; the zero value makes none.
type backlogChange struct {
	// of selects the deliveries; set are the assignments, in which $2 is the time and
	// found.due_at the DueAt of the key.
	of, set string
}

// changeOf returns the change that a subscription's state requires of its backlog.
func changeOf(row Row) backlogChange {
	switch {
	case row.State == StateDeleted:
		return backlogChange{of: openDeliveries, set: Cancelled}
	case row.State == StatePaused || row.StoppedAt != nil:
		return backlogChange{}
	}
	return backlogChange{of: openDeliveries + ` AND parked`, set: `parked = false`}
}

const openDeliveries = `state IN ('pending', 'retrying')`

// backlogOf reads at most limit of the deliveries that must change, the longest overdue
// first.
func backlogOf(
	ctx context.Context, tx *postgres.Tx, row Row, limit int,
) (keys []backlogKey, err error) {
	change := changeOf(row)
	if change.set == "" {
		return nil, nil
	}
	err = tx.SelectContext(ctx, &keys, `
		SELECT delivery_uid, created_at
		  FROM deliveries
		 WHERE subscription_uid = $1
		   AND `+change.of+`
		 ORDER BY next_attempt_at, delivery_uid
		 LIMIT $2`, row.UID, limit)
	if err != nil {
		return nil, fmt.Errorf("reading the backlog of subscription %s: %w", row.UID, err)
	}
	return keys, nil
}

// changeBacklog changes the deliveries to which the change still applies.
func changeBacklog(
	ctx context.Context, tx *postgres.Tx, change backlogChange, keys []backlogKey,
) error {
	if change.set == "" || len(keys) == 0 {
		return nil
	}
	uids := make([]string, len(keys))
	created, due := make([]time.Time, len(keys)), make([]time.Time, len(keys))
	for i, key := range keys {
		uids[i], created[i], due[i] = key.UID.String(), key.CreatedAt, key.DueAt
	}
	// The limit, and the CASE around indexed conditions, make the planner look each row up
	// by its key. The rows are locked in the order in which other code locks deliveries.
	_, err := tx.ExecContext(ctx, `
		WITH key AS (
			SELECT uid, at, due_at
			  FROM unnest($1::uuid[], $3::timestamptz[], $4::timestamptz[]) AS key (uid, at, due_at)
			 LIMIT cardinality($1::uuid[])
		), chosen AS MATERIALIZED (
			SELECT d.delivery_uid, d.created_at, key.due_at
			  FROM key
			  JOIN deliveries d ON d.delivery_uid = key.uid AND d.created_at = key.at
			 WHERE CASE WHEN `+change.of+` THEN $2::timestamptz IS NOT NULL ELSE false END
			 ORDER BY d.delivery_uid
			   FOR UPDATE OF d
		), found AS (
			SELECT delivery_uid, created_at, due_at FROM chosen LIMIT cardinality($1::uuid[])
		)
		UPDATE deliveries d
		   SET `+change.set+`
		  FROM found
		 WHERE d.delivery_uid = found.delivery_uid
		   AND d.created_at = found.created_at`,
		pq.Array(uids), tx.Now, pq.Array(created), pq.Array(due))
	if err != nil {
		return fmt.Errorf("changing a backlog: %w", err)
	}
	return nil
}
