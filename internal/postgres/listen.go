package postgres

import (
	"context"
	"time"

	"github.com/lib/pq"
)

const (
	// The pauses before the connection is made again that listens.
	leastPause, mostPause = 100 * time.Millisecond, 10 * time.Second
	// eraGlance is how often a connection that listens is held against the era.
	eraGlance = time.Second
)

// Listen says that something was notified on a channel, until ctx ends: once for several if
// nobody takes it meanwhile, and once whenever it begins to listen, as what was notified before
// could not be heard. Of a server that turned out to let nobody write nothing is to be heard, so
// it listens at the next one then.
func (db *DB) Listen(ctx context.Context, channel string) <-chan struct{} {
	news := make(chan struct{}, 1)
	go func() {
		for ctx.Err() == nil {
			db.listen(ctx, channel, news)
		}
	}()
	return news
}

// listen listens as long as the server may be written.
func (db *DB) listen(ctx context.Context, channel string, news chan<- struct{}) {
	era := db.Era()
	listener := pq.NewListener(db.URL(), leastPause, mostPause, nil)
	closing := func() { _ = listener.Close() } // fails only once it is closed
	defer closing()
	defer context.AfterFunc(ctx, closing)()
	_ = listener.Listen(channel) // waits for a connection, and fails likewise
	glance := time.NewTicker(eraGlance)
	defer glance.Stop()
	tell := func() {
		select {
		case news <- struct{}{}:
		default:
		}
	}
	tell() // the listener passes over what comes while it connects
	for era == db.Era() {
		select {
		case <-ctx.Done():
			return
		case <-glance.C:
		case <-listener.Notify:
			tell()
		}
	}
}
