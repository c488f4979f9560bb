package partner

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"drawbridge/internal/postgres"
)

// The bounds of a chunk, the tokens that a process takes at a time.
const (
	maxChunk = 64
	// chunksPerSecond is how often a client at its full rate queries the database.
	chunksPerSecond = 50
)

// heldFor is how long a process may use the tokens that it took.
const heldFor = time.Second

// Limiter limits each client to its rate across all processes of one database.
//
// A client has a bucket of burst tokens that fills at its rate; a request takes one. The bucket
// is a row, so all processes draw on the same tokens. A process takes a chunk of them in one
// statement and gives them out from memory, which spares fast clients a statement per request. A
// chunk is a fiftieth of a second's rate, at most 64 tokens, and unused ones are dropped after a
// second: up to 99 requests/s a chunk is one token and the limit is exact; above that, a second
// can exceed it by one chunk per process. Counted from the first request on, never more than
// burst + rate x elapsed are allowed.
//
// An empty bucket is remembered until its next token is due. Only time fills it, so a client
// that keeps sending costs no statements meanwhile.
type Limiter struct {
	DB *postgres.DB

	mu sync.Mutex
	// buckets has one small entry per client, and only operators create clients.
	buckets map[string]*bucket
}

// Decision is the answer to one request, and the content of the RateLimit headers.
type Decision struct {
	Allowed bool
	// Limit is how many requests may come at once: the burst.
	Limit int
	// Remaining is how many more may follow at once.
	Remaining int
	// Reset is the number of seconds, rounded up, until all of Limit may come again.
	Reset int
	// RetryAfter is the number of seconds, rounded up, until the next request may come; 0 if this
	// one was allowed.
	RetryAfter int
}

// bucket is a process's view of one client's bucket.
type bucket struct {
	// sem is held by the one request that accesses the other fields. It is a channel instead of a
	// mutex so that waiting ends with the request.
	sem chan struct{}
	// rate and burst are the limits with which tokens was computed.
	rate, burst int
	// at is the time of the last query.
	at time.Time
	// tokens are those left in the database at that time; held are those taken and not yet used.
	tokens float64
	held   int
}

// Take decides whether the caller may make one request now.
func (l *Limiter) Take(ctx context.Context, caller Caller) (Decision, error) {
	local := l.bucket(caller.ClientID)
	defer postgres.Waiting(ctx)() // the holder of the semaphore may wait for the database
	select {
	case local.sem <- struct{}{}:
		defer func() { <-local.sem }()
	case <-ctx.Done():
		return Decision{}, fmt.Errorf("waiting for the bucket of client %s: %w",
			caller.ClientID, ctx.Err())
	}
	now := l.DB.Now().UTC().Truncate(time.Microsecond)
	if !local.isCurrent(caller, now) {
		if err := l.refill(ctx, local, caller, now); err != nil {
			return Decision{}, err
		}
	}
	return local.decide(now), nil
}

func (l *Limiter) bucket(clientID string) *bucket {
	l.mu.Lock()
	defer l.mu.Unlock()
	local, ok := l.buckets[clientID]
	if !ok {
		if l.buckets == nil {
			l.buckets = map[string]*bucket{}
		}
		local = &bucket{sem: make(chan struct{}, 1)}
		l.buckets[clientID] = local
	}
	return local
}

// isCurrent reports whether the request can be decided without the database: with a held token,
// or because there cannot be a token yet. A changed limit or a clock that was set back forces a
// query.
func (b *bucket) isCurrent(caller Caller, now time.Time) bool {
	age := now.Sub(b.at)
	if b.rate != caller.RatePerSecond || b.burst != caller.Burst || age < 0 {
		return false
	}
	if b.held > 0 {
		return age < heldFor
	}
	return b.tokens < 1 && age < b.wait()
}

// wait returns how long after b.at the bucket has a whole token.
func (b *bucket) wait() time.Duration {
	missing := max(0, 1-b.tokens)
	return time.Duration(math.Ceil(missing / float64(b.rate) * float64(time.Second)))
}

// decide uses a token if one is held.
func (b *bucket) decide(now time.Time) Decision {
	decision := Decision{Allowed: b.held > 0, Limit: b.burst}
	if decision.Allowed {
		b.held--
	} else {
		// At least 1: "after 0 seconds" would invite the client to retry in a loop.
		decision.RetryAfter = max(1, seconds(b.wait()-now.Sub(b.at)))
	}
	refilled := b.tokens + now.Sub(b.at).Seconds()*float64(b.rate)
	left := min(float64(b.burst), refilled+float64(b.held))
	if decision.Allowed {
		decision.Remaining = int(left)
	}
	missing := (float64(b.burst) - left) / float64(b.rate)
	decision.Reset = seconds(time.Duration(missing * float64(time.Second)))
	return decision
}

// refill takes a chunk from the database, or as much of one as is left.
func (l *Limiter) refill(ctx context.Context, local *bucket, caller Caller, now time.Time) error {
	chunk := min(max(caller.RatePerSecond/chunksPerSecond, 1), maxChunk)
	// A process whose clock lags behind the others must not set the row's time back, or the tokens
	// since then would be given out twice. A difference of ten seconds is not lag but an earlier
	// wrong clock: the row starts over, because otherwise the client would wait until the clock has
	// caught up.
	var row struct {
		Tokens float64 `db:"tokens"`
		Taken  int     `db:"taken"`
	}
	err := l.DB.GetContext(ctx, &row, `
		INSERT INTO rate_buckets AS b (client_id, tokens, taken, updated_at)
		VALUES ($1, $2::float8 - least($2, $4)::integer, least($2, $4)::integer, $5)
		ON CONFLICT (client_id) DO UPDATE
		   SET (tokens, taken, updated_at) = (
		       SELECT refilled - least(floor(refilled), $4),
		              least(floor(refilled), $4),
		              CASE WHEN b.updated_at > $5::timestamptz + interval '10 seconds' THEN $5
		                   ELSE greatest(b.updated_at, $5) END
		         FROM (SELECT least($2::float8, b.tokens + $3::float8 * greatest(0,
		                      extract(epoch FROM $5 - b.updated_at)::float8))) AS r (refilled))
		RETURNING tokens, taken`,
		caller.ClientID, caller.Burst, caller.RatePerSecond, chunk, now)
	if err != nil {
		return fmt.Errorf("taking tokens of client %s: %w", caller.ClientID, err)
	}
	local.rate, local.burst, local.at = caller.RatePerSecond, caller.Burst, now
	local.tokens, local.held = row.Tokens, row.Taken
	return nil
}

// seconds rounds up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
