package apilog

import (
	"context"
	"time"

	"drawbridge/internal/postgres"
)

// BufferSize is how many entries wait in memory.
const BufferSize = bufferSize

// Query is the statement of a page, for tests of its plan.
func (f Filter) Query(page postgres.Paging) (string, []any) {
	return f.newest(`r.*`, page.OneMore())
}

// Store writes a batch as the writer does.
func Store(ctx context.Context, db *postgres.DB, batch []Entry) error {
	return store(ctx, db, batch)
}

// Clean returns an entry as it is stored.
func (e Entry) Clean() Entry { return e.clean() }

// TryFor bounds an attempt to store a batch.
func (w *Writer) TryFor(timeout time.Duration) { w.timeout = timeout }
