package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/lib/pq"
)

const (
	// persistPatience is how long Persist keeps trying: well above the ten minutes for which a
	// database may be away.
	persistPatience = 15 * time.Minute
	// persistTry bounds one try.
	persistTry = 10 * time.Second
	// persistPause is the first pause between two tries. It doubles up to maxPersistPause; up to half
	// as much is added at random, so that callers that waited for the same database do not all return
	// at once.
	persistPause    = 50 * time.Millisecond
	maxPersistPause = 5 * time.Second
)

// Persist runs write until it succeeds, fails for a reason that time does not fix, or a quarter of
// an hour has passed; meanwhile the database may be away, locked or full. It is for results that
// are known already and would be lost: only the end of the process stops it, not the end of ctx.
// Since nobody can tell whether a failed try took effect, write must change nothing when it runs
// again.
func Persist(ctx context.Context, what string, write func(ctx context.Context) error) error {
	ctx = context.WithoutCancel(ctx)
	begun := time.Now()
	for pause := persistPause; ; pause = min(2*pause, maxPersistPause) {
		bounded, cancel := context.WithTimeout(ctx, persistTry)
		err := write(bounded)
		cancel()
		if err == nil || !isPassing(err) || time.Since(begun) > persistPatience {
			return err
		}
		if pause == persistPause {
			slog.WarnContext(ctx, "the database does not take what is known; trying on",
				"what", what, "error", err)
		}
		//nolint:gosec // nobody gains by guessing it
		<-time.After(pause + rand.N(pause/2))
	}
}

// isPassing reports whether err is about the state of the database, or of the connection to it, and
// not about the statement.
func isPassing(err error) bool {
	if pqErr, ok := errors.AsType[*pq.Error](err); ok {
		switch pqErr.Code.Class() {
		case "08", "40", "53", "57", "58", // connection, conflict, resources, operator, system
			"42": // the statements are right: the schema or the rights are being changed
			return true
		}
		return IsLockTimeout(err) || IsReadOnly(err) || isStale(err)
	}
	_, network := errors.AsType[net.Error](err)
	_, broken := errors.AsType[*ConnectionError](err) // none of the hosts can be written
	return network || broken || slices.ContainsFunc([]error{
		driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded,
		sql.ErrTxDone, // the context ended between the last statement and the commit
	}, func(one error) bool { return errors.Is(err, one) })
}
