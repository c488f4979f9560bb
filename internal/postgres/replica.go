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
	// replicaEvery is how often the replica is polled.
	replicaEvery = time.Second
	// replicaShare is the part of a timeout after which a read that the replica has not answered goes
	// to the primary, with the rest of the timeout.
	replicaShare = 4
	// markLimit is how many marks are kept before every second one is dropped.
	markLimit = 1024
)

// WithReplica lets reads that may lag (see MayLag) go to a standby that follows the primary by
// streaming replication, as long as it is no more than most behind.
func WithReplica(rawURL string, most time.Duration) Option {
	return func(o *options) { o.replica, o.mostLag = rawURL, most }
}

// replica is the standby and what is known of it.
type replica struct {
	pool *sqlx.DB
	// most is how far behind the replica may be, patience how long a read of it may take.
	most, patience time.Duration
	state          atomic.Pointer[ReplicaState]
	// marks are earlier positions of the primary, oldest first: the newest that the replica is known
	// to have reached, and all since. Only PollReplica uses them.
	marks []mark
}

// mark is a position in the primary's write-ahead log, and when that was the newest.
type mark struct {
	at       time.Time
	position int64
}

// ReplicaState is the result of the last poll of the replica.
type ReplicaState struct {
	// Lag is how old the replica's data may be, at most; if CaughtUp is false, at least.
	Lag      time.Duration
	CaughtUp bool
	// Problem is why the replica cannot be used, whatever its lag; empty for none.
	Problem string

	found time.Time
}

// String describes the state in words.
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

// openReplica prepares the pool of the chosen replica, which connects when it is used.
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

// Replica returns the last known state of the replica and whether reads may use it; configured is
// false where there is none.
func (db *DB) Replica() (state ReplicaState, used, configured bool) {
	if db.replica == nil {
		return ReplicaState{}, false, false
	}
	state = *db.replica.state.Load()
	return state, db.replica.usable(state), true
}

// MostLag is how old data from the replica may be, 0 where there is none.
func (db *DB) MostLag() time.Duration {
	if db.replica == nil {
		return 0
	}
	return db.replica.most
}

// usable reports whether the replica's data is recent enough now.
func (r *replica) usable(state ReplicaState) bool {
	return state.CaughtUp && state.Problem == "" && time.Since(state.found)+state.Lag <= r.most
}

// WatchReplica polls the replica, of which there must be one, until ctx ends. The replica is not
// used unless WatchReplica runs.
func (db *DB) WatchReplica(ctx context.Context) {
	used := false
	for going := true; going; going = Pause(ctx, replicaEvery) {
		state := db.PollReplica(ctx)
		if now := db.replica.usable(state); now != used && ctx.Err() == nil {
			used = now
			slog.InfoContext(ctx, "reading from the replica", "used", used, "state", state.String())
		}
	}
}

// PollReplica finds out how far behind the replica is. It must not be called concurrently.
//
// It reads the primary's position before the replica's: once the replica has passed that position,
// it shows whatever was committed before the query. The only clock involved is this process's, and
// a replica that receives nothing any more falls behind like any other.
func (db *DB) PollReplica(ctx context.Context) ReplicaState {
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

// note keeps the primary's position. A position before the last one is that of another primary,
// promoted without the last writes of the old one, so the earlier marks are dropped.
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

// behind returns how long ago the primary was at the position replayed: at most that long if true,
// else at least.
func (r *replica) behind(now time.Time, replayed int64) (time.Duration, bool) {
	for len(r.marks) > 1 && r.marks[1].position <= replayed {
		r.marks = r.marks[1:]
	}
	if len(r.marks) == 0 {
		return 0, false
	}
	return now.Sub(r.marks[0].at), r.marks[0].position <= replayed
}

// source is where those reads of a context go that may lag. The first of them chooses it; later it
// can only change to the primary, so that later reads show no older data.
type source struct{ chosen atomic.Int32 }

const (
	undecided int32 = iota
	fromReplica
	fromPrimary
)

type sourceKey struct{}

// MayLag lets reads of ctx outside of transactions show data as old as the replica may be behind.
// Where there is none, or it cannot be used, they show the current data.
func MayLag(ctx context.Context) context.Context {
	return context.WithValue(ctx, sourceKey{}, new(source))
}

// Current revokes MayLag.
func Current(ctx context.Context) context.Context {
	return context.WithValue(ctx, sourceKey{}, (*source)(nil))
}

// Lagged reports whether anything read in ctx may have been out of date.
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

// read reads from the source that ctx allows. When the replica refuses a read or does not answer in
// time, the primary serves it, and all later reads of ctx.
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
