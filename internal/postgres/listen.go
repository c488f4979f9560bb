package postgres

import (
	"context"
	"time"

	"github.com/lib/pq"
)

const (
	// The pauses before a lost listening connection is made again.
	leastPause, mostPause = 100 * time.Millisecond, 10 * time.Second
	// eraCheckInterval is how often a listening connection checks that its era is still current.
	eraCheckInterval = time.Second
)

// Listen sends on the returned channel for each notification on a Postgres channel, until ctx ends.
// Notifications that nobody has received yet are merged, and it also sends whenever it begins to
// listen, since earlier notifications are lost. When the server turns out to refuse writes, it
// sends no more notifications, so Listen connects to the next server.
func (db *DB) Listen(ctx context.Context, channel string) <-chan struct{} {
	news := make(chan struct{}, 1)
	go func() {
		for ctx.Err() == nil {
			db.listen(ctx, channel, news)
		}
	}()
	return news
}

// listen listens as long as the server accepts writes.
func (db *DB) listen(ctx context.Context, channel string, news chan<- struct{}) {
	era := db.Era()
	listener := pq.NewListener(db.URL(), leastPause, mostPause, nil)
	closing := func() { _ = listener.Close() } // fails only once it is closed
	defer closing()
	defer context.AfterFunc(ctx, closing)()
	_ = listener.Listen(channel) // waits for a connection, and fails likewise
	glance := time.NewTicker(eraCheckInterval)
	defer glance.Stop()
	tell := func() {
		select {
		case news <- struct{}{}:
		default:
		}
	}
	tell() // the listener drops notifications while it connects
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
