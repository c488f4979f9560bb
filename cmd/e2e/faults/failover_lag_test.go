//go:build chaos

package faults

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// slack is how long after its commit a confirmation may come on a busy machine.
const slack = 2 * time.Second

// TestFaultFailOverAsynchronous kills a primary that does not wait for its standby, which is cut
// off a moment before. Changes confirmed since then are missing, each completely, and no older
// ones; a follower of the feed gets all existing events. The test logs how many are missing, and
// how many webhooks partners got of which the promoted server has no record.
func TestFaultFailOverAsynchronous(t *testing.T) {
	t.Parallel()
	primary := newOwnPostgres(t)
	address, err := url.Parse(primary.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	link := newProxy(t, address.Host)
	address.Host = link.listener.Addr().String()
	u := newUnderLoad(t, newPairBehind(primary, address.String()))
	metAll := u.follows()
	link.flow.Lock()
	cut, before := time.Now(), u.accepted.Load()
	waittest.Within(t, time.Minute, "more calls are confirmed", func() bool {
		return u.accepted.Load() >= before+5*callers
	})
	u.gone = time.Now()
	u.stop(syscall.SIGQUIT)
	link.cut()
	link.flow.Unlock()
	u.takesOver()
	u.tasks.Wait()
	db := opened(t, u.standby)
	// A job whose end did not reach the standby is retried after ten minutes.
	waitUntilSettled(t, db, 15*time.Minute)
	metAll(db)
	titles := u.confirmed()
	kept := committed(t, db, titles)
	oldest := u.gone
	for i, title := range titles {
		if slices.Contains(kept, title) {
			continue
		}
		at := u.confirmations[i]
		if at.Before(oldest) {
			oldest = at
		}
		if at.Before(cut.Add(-slack)) || at.After(u.promoted) {
			t.Errorf("%s is missing, confirmed %s after the standby was cut off", title, at.Sub(cut))
		}
	}
	if len(kept) == len(titles) {
		t.Error("nothing is missing: nothing was tested")
	}
	again, unknown := 0, 0
	for uid, got := range u.r.got {
		numbers := map[int]bool{}
		for _, one := range got {
			if numbers[one.number] {
				again++
			}
			numbers[one.number] = true
		}
		if pgtest.Count(t, db, `SELECT count(*) FROM deliveries WHERE delivery_uid = $1`, uid) == 0 {
			unknown++
		}
	}
	t.Logf("of %d confirmed tasks %d are missing, the oldest confirmed %s before the loss, when the "+
		"standby had been cut off for %s; %d requests were sent again under their number; "+
		"%d deliveries came that are not known", len(titles), len(titles)-len(kept),
		u.gone.Sub(oldest).Round(time.Millisecond), u.gone.Sub(cut).Round(time.Millisecond),
		again, unknown)
	if missing := pgtest.Count(t, db, `
		SELECT count(*) FROM tasks t
		 WHERE NOT EXISTS (SELECT 1 FROM events e
		                    WHERE e.kind = 'task.created'
		                      AND convert_from(e.body, 'UTF8')::jsonb ->> 'task_title' = t.title)
		   AND t.title LIKE 'task %'`); missing > 0 {
		t.Errorf("%d tasks are there without their events", missing)
	}
}

// follows starts a follower of the feed, and returns a function that fails the test unless the
// follower gets every event that a database has since then.
func (u *underLoad) follows() (metAll func(*postgres.DB)) {
	t := u.w.T
	t.Helper()
	start, err := u.read(t.Context(), "after=latest")
	if err != nil {
		t.Fatal(err)
	}
	from := start.Result.Data.NextCursor
	fed := &ledgerOf{bodies: map[string]string{}}
	ctx, stop := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { u.follow(ctx, fed, "wait=1&after=", from) })
	return func(db *postgres.DB) {
		t.Helper()
		defer following.Wait()
		defer stop()
		var uids []string
		err := db.SelectContext(t.Context(), &uids, `
			SELECT event_uid
			  FROM feed
			 WHERE kind = 'task.created'
			   AND position > split_part($1, '.', 2)::bigint`, from)
		if err != nil {
			t.Fatal(err)
		}
		missing := func() int {
			fed.mu.Lock()
			defer fed.mu.Unlock()
			uids = slices.DeleteFunc(uids, func(uid string) bool { return fed.bodies[uid] != "" })
			return len(uids)
		}
		waittest.Within(t, time.Minute, "the follower of the feed has met all events", func() bool {
			return missing() == 0
		})
		fed.mu.Lock()
		defer fed.mu.Unlock()
		// The standby may have an event without its position in the feed, and assigns another.
		t.Logf("the follower of the feed met %d events, %d of them twice", len(fed.bodies), fed.doubled)
	}
}
