package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
)

const (
	// replicaEvery is how often a replica is looked at.
	replicaEvery = time.Second
	// replicaShare is the part of a timeout after which a read of a replica that does not
	// answer goes to the primary, with the rest of it.
	replicaShare = 4
	// markLimit is how many marks are kept before every second one is dropped.
	markLimit = 1024
)

// WithReplica lets reads that may lag (see MayLag) go to a standby that follows the
// primary by streaming replication, as long as it is behind by no more than most.
func WithReplica(rawURL string, most time.Duration) Option {
	return func(o *options) { o.replica, o.mostLag = rawURL, most }
}

// replica is the standby and what is known of it.
type replica struct {
	pool *sqlx.DB
	// most is how far behind it may be, patience how long a read of it may take.
	most, patience time.Duration
	state          atomic.Pointer[ReplicaState]
	// marks are where the primary was when, oldest first: the newest that the replica is
	// known to have, and all since. They belong to the one that looks.
	marks []mark
}

// mark is a place in the primary's log, and when that was the newest.
type mark struct {
	at       time.Time
	position int64
}

// ReplicaState is what was last found of a replica.
type ReplicaState struct {
	// Lag is how old what it shows may be, at most; if CaughtUp is false, at least.
	Lag      time.Duration
	CaughtUp bool
	// Problem is why it cannot be used, whatever its lag; empty for none.
	Problem string

	found time.Time
}

// String says it in words.
func (s ReplicaState) String() string {
	switch {
	case s.found.IsZero():
		return "the replica has not been looked at yet"
	case s.Problem != "":
		return s.Problem
	case !s.CaughtUp:
		return fmt.Sprintf("the replica is more than %s behind", s.Lag.Round(time.Millisecond))
	}
	return fmt.Sprintf("the replica is at most %s behind", s.Lag.Round(time.Millisecond))
}

// openReplica prepares the pool of the replica that was chosen. It connects when it is used.
func openReplica(chosen options) (*replica, error) {
	dsn, err := dataSource(chosen.replica, chosen)
	if err != nil {
		return nil, fmt.Errorf("the replica: %w", err)
	}
	made := &replica{most: chosen.mostLag, patience: chosen.timeout / replicaShare}
	chosen.timeout, chosen.health = made.patience, &health{standby: true}
	if made.pool, err = openPool(dsn, chosen, maxConnections); err != nil {
		return nil, fmt.Errorf("the replica: %w", err)
	}
	made.state.Store(new(ReplicaState))
	return made, nil
}

// Replica is what was last found of the replica, whether it is used, and false where there
// is none.
func (db *DB) Replica() (state ReplicaState, used, configured bool) {
	if db.replica == nil {
		return ReplicaState{}, false, false
	}
	state = *db.replica.state.Load()
	return state, db.replica.usable(state), true
}

// MostLag is how old what a replica shows may be, 0 where there is none.
func (db *DB) MostLag() time.Duration {
	if db.replica == nil {
		return 0
	}
	return db.replica.most
}

// usable tells whether what the replica shows is new enough now.
func (r *replica) usable(state ReplicaState) bool {
	return state.CaughtUp && state.Problem == "" && time.Since(state.found)+state.Lag <= r.most
}

// WatchReplica looks at the replica, of which there must be one, until ctx ends. Without
// that it is not used.
func (db *DB) WatchReplica(ctx context.Context) {
	used := false
	for going := true; going; going = Pause(ctx, replicaEvery) {
		state := db.LookAtReplica(ctx)
		if now := db.replica.usable(state); now != used && ctx.Err() == nil {
			used = now
			slog.InfoContext(ctx, "reading from the replica", "used", used, "state", state.String())
		}
	}
}

// LookAtReplica finds out how far behind the replica is. It is for one caller at a time.
//
// Where the primary is, is asked before where the replica is: once the replica has passed
// that place, it shows whatever was committed before the question. No clock but this
// process's is asked, and a replica that receives nothing any more falls behind like any.
func (db *DB) LookAtReplica(ctx context.Context) ReplicaState {
	r := db.replica
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	asked := time.Now()
	var primary, standby struct {
		Cluster    int64  `db:"cluster"`
		Position   *int64 `db:"position"`
		InRecovery bool   `db:"in_recovery"`
	}
	err := db.GetContext(ctx, &primary, `
		SELECT system_identifier AS cluster,
		       pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint AS position
		  FROM pg_control_system()`)
	if err == nil {
		r.note(mark{asked, *primary.Position})
	}
	state := ReplicaState{found: asked}
	seen := r.pool.GetContext(ctx, &standby, `
		SELECT system_identifier AS cluster, pg_is_in_recovery() AS in_recovery,
		       pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint AS position
		  FROM pg_control_system()`)
	switch {
	case seen != nil:
		state.Problem = "the replica does not answer"
	case !standby.InRecovery || standby.Position == nil:
		state.Problem = "the replica follows nobody: it is a primary itself"
	case err == nil && standby.Cluster != primary.Cluster:
		state.Problem = "the replica is a copy of another server"
	default:
		state.Lag, state.CaughtUp = r.behind(asked, *standby.Position)
	}
	r.state.Store(&state)
	return state
}

// note keeps where the primary was. One that is further back than before is another one, that
// was promoted without what the first had written last.
func (r *replica) note(now mark) {
	if last := len(r.marks) - 1; last >= 0 && now.position < r.marks[last].position {
		r.marks = nil
	}
	r.marks = append(r.marks, now)
	if last := len(r.marks) - 1; last >= markLimit {
		kept := r.marks[:0]
		for i := 0; i < last; i += 2 {
			kept = append(kept, r.marks[i])
		}
		kept = append(kept, now)
		r.marks = kept
	}
}

// behind is how long ago the primary was where the replica is, at most, or at least and false.
func (r *replica) behind(now time.Time, replayed int64) (time.Duration, bool) {
	for len(r.marks) > 1 && r.marks[1].position <= replayed {
		r.marks = r.marks[1:]
	}
	if len(r.marks) == 0 {
		return 0, false
	}
	return now.Sub(r.marks[0].at), r.marks[0].position <= replayed
}

// source is where the reads of a context go that may lag. It is chosen by the first of them,
// and changes to the primary alone, so that what is read later is not older.
type source struct{ chosen atomic.Int32 }

const (
	undecided int32 = iota
	fromReplica
	fromPrimary
)

type sourceKey struct{}

// MayLag lets reads of ctx outside of transactions show how things were a while ago: as
// long ago as the replica may be behind. Where there is none, or it cannot be used, they
// show how things are.
func MayLag(ctx context.Context) context.Context {
	return context.WithValue(ctx, sourceKey{}, new(source))
}

// Current takes back what MayLag allows.
func Current(ctx context.Context) context.Context {
	return context.WithValue(ctx, sourceKey{}, (*source)(nil))
}

// Lagged tells whether something may have been missing in what was read in ctx.
func Lagged(ctx context.Context) bool {
	from, _ := ctx.Value(sourceKey{}).(*source)
	return from != nil && from.chosen.Load() == fromReplica
}

// choose returns the source of ctx if it is the replica, else nil.
func (db *DB) choose(ctx context.Context) *source {
	from, _ := ctx.Value(sourceKey{}).(*source)
	if from == nil || db.replica == nil {
		return nil
	}
	now := fromPrimary
	if db.replica.usable(*db.replica.state.Load()) {
		now = fromReplica
	}
	from.chosen.CompareAndSwap(undecided, now)
	if now == fromPrimary {
		from.chosen.Store(fromPrimary)
	}
	if from.chosen.Load() == fromPrimary {
		return nil
	}
	return from
}

// read reads from where ctx says. What the replica refuses, and what it does not answer in
// time, is asked of the primary, and so is the rest of ctx.
func (db *DB) read(ctx context.Context, read func(ctx context.Context, from *sqlx.DB) error) error {
	if from := db.choose(ctx); from != nil {
		patient, cancel := context.WithTimeout(ctx, db.replica.patience)
		err := read(patient, db.replica.pool)
		cancel()
		if err == nil || errors.Is(err, sql.ErrNoRows) || ctx.Err() != nil {
			return err
		}
		from.chosen.Store(fromPrimary)
	}
	return read(ctx, db.DB)
}
