package migrations

import (
	"context"
	"time"

	"github.com/pressly/goose/v3/lock"
)

// LockerWith is the lock of a run with other times than the real ones.
func LockerWith(
	pause, notice time.Duration, tell func(ctx context.Context, waited time.Duration),
) (lock.SessionLocker, error) {
	locker, err := newLocker()
	locker.pause, locker.notice, locker.tell = pause, notice, tell
	return locker, err
}
