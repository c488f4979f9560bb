package processes

import (
	"context"
	"encoding/binary"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

const (
	// holdEvery is how often a process checks that it holds its lock.
	holdEvery = time.Second
	// holdTimeout bounds that check; a slow server has not freed the lock.
	holdTimeout = 10 * time.Second
)

// lockKey returns the key of a process's lock, from the random part of its identifier.
func lockKey(process uuid.UUID) int64 { return int64(binary.BigEndian.Uint64(process[8:])) }

// hold keeps a lock in the database until ctx ends. The server frees it when the process is dead,
// so others need not wait for missing beats. It signals changed when the lock was taken, and when
// it was lost and could not be taken again: then the process's row must say so before a Watch
// considers the process dead.
func (s *Service) hold(ctx context.Context, process Process, changed chan<- struct{}) {
	ticker := time.NewTicker(holdEvery)
	defer ticker.Stop()
	var lock *postgres.Lock
	for {
		bounded, cancel := context.WithTimeout(ctx, holdTimeout)
		if lock == nil || !lock.Held(bounded) {
			free(ctx, lock)
			var err error
			lock, err = s.DB.Lock(bounded, lockKey(process.UID))
			if err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "locking the place of the process", "error", err)
			}
		}
		cancel()
		var key int64
		if lock != nil {
			key = lockKey(process.UID)
		}
		if s.lockKey.Swap(key) != key {
			select {
			case changed <- struct{}{}:
			default: // an earlier signal is still pending
			}
		}
		select {
		case <-ctx.Done():
			free(context.WithoutCancel(ctx), lock)
			return
		case <-ticker.C:
		}
	}
}

func free(ctx context.Context, lock *postgres.Lock) {
	if lock == nil {
		return
	}
	if err := lock.Free(); err != nil {
		slog.WarnContext(ctx, "freeing the place of the process", "error", err)
	}
}
