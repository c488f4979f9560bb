package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/feed"
	"drawbridge/internal/lending"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
)

// rareEvery is the number of events among which one is of a rare kind.
const rareEvery = 5000

// feed measures pages at various cursors over HTTP, and how soon a waiting request is answered.
func (b *bench) feed(ctx context.Context, open *cleanup) error {
	a, err := b.newAPI(ctx, open)
	if err != nil {
		return err
	}
	if err := b.waking(ctx, open, a); err != nil {
		return err
	}
	return b.feedPages(ctx, open, a)
}

// feedPages reads a long feed: half of its events are of one merchant, the others of very many.
func (b *bench) feedPages(ctx context.Context, open *cleanup, a *apiRun) error {
	b.say("feed: publishing %d events of %d merchants", b.sizes.published, b.sizes.merchants)
	merchants, err := a.joinedBy(ctx, b.sizes.merchants)
	if err != nil {
		return err
	}
	head, err := a.harness.fillFeed(ctx, merchants, b.sizes.published)
	if err != nil {
		return err
	}
	if err := settle(ctx, a.harness.DB); err != nil {
		return err
	}
	b.say("feed: reading %d pages of each reader", b.sizes.visits)
	for _, reader := range []struct {
		name, query string
		merchants   []uuid.UUID
	}{
		{"a busy merchant", "", merchants[:1]},
		{"one of many merchants", "", merchants[1:2]},
		{"all merchants", "", merchants},
		{"a rare kind of all merchants", "&event=" + string(lending.EventTaskCreated), merchants},
	} {
		made, err := a.follower(ctx, open, reader.merchants)
		if err != nil {
			return err
		}
		pages, err := drive(ctx, 1, b.sizes.visits, func(context.Context, int, int) error {
			after := feed.Cursor(head - 1 - rand.Int64N(int64(b.sizes.published)))
			return made.do(call{
				method: http.MethodGet, path: "/v2/events?limit=100&after=" + after.String() + reader.query,
			})
		})
		if err != nil {
			return err
		}
		rows, err := drive(ctx, 1, b.sizes.visits, func(ctx context.Context, _, _ int) error {
			return readAll(ctx, a.harness.DB, fmt.Sprintf(`
				SELECT e.event_uid, e.sequence, e.kind, e.subject, e.merchant_uid, e.application_uid,
				       e.reference, e.occurred_at, e.body
				  FROM (SELECT position, event_uid, occurred_at
				          FROM feed
				         WHERE position > %d
				         ORDER BY position
				         LIMIT 100) AS f
				 CROSS JOIN LATERAL (
				       SELECT event_uid, sequence, kind, subject, merchant_uid, application_uid, reference,
				              occurred_at, body
				         FROM events
				        WHERE event_uid = f.event_uid
				          AND occurred_at = f.occurred_at
				       OFFSET 0) AS e
				 ORDER BY f.position`, head-1-rand.Int64N(int64(b.sizes.published))))
		})
		if err != nil {
			return err
		}
		b.report.addTimes(row{
			Section:   fmt.Sprintf("feed of %d events, pages of 100", b.sizes.published),
			FloorName: "its rows by one statement, of whichever merchant", Name: reader.name,
		}, pages, rows, share{"p50", 0.5, ""}, share{"p95", 0.95, "< 20 ms"})
	}
	return nil
}

// joinedBy adds merchants to the caller's, each with an application, and returns all n.
func (a *apiRun) joinedBy(ctx context.Context, n int) ([]uuid.UUID, error) {
	merchants := []uuid.UUID{a.owner.merchant}
	err := a.harness.DB.InTx(ctx, func(tx *postgres.Tx) error {
		merchants = merchants[:1]
		for len(merchants) < n {
			made, err := a.harness.Partners.CreateMerchant(ctx, tx, a.owner.partner,
				fmt.Sprintf("Merchant %d", len(merchants)))
			if err != nil {
				return err
			}
			merchants = append(merchants, made.UID)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("adding merchants: %w", err)
	}
	for _, merchant := range merchants {
		joined := a.owner
		joined.merchant = merchant
		if _, err := a.harness.newApplication(ctx, joined, created); err != nil {
			return nil, err
		}
	}
	return merchants, nil
}

// fillFeed writes n events as recording and publishing do, but in one go, and returns the newest
// position. Foreign keys to merchants and applications are not checked, since these are known to
// exist.
func (h *harness) fillFeed(ctx context.Context, merchants []uuid.UUID, n int) (int64, error) {
	var head int64
	err := h.DB.InTx(ctx, func(tx *postgres.Tx) error {
		if _, err := tx.ExecContext(ctx, `SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `
			WITH home AS (
				SELECT min(application_uid::text)::uuid AS application_uid, partner_uid, merchant_uid,
				       array_position($1::uuid[], merchant_uid) - 1 AS place
				  FROM applications
				 WHERE merchant_uid = ANY ($1)
				 GROUP BY merchant_uid, partner_uid
			), event AS (
				INSERT INTO events (event_uid, occurred_at, kind, partner_uid, merchant_uid,
				                    application_uid, sequence, subject, status, body)
				SELECT drawbridge_uid(now()), now() + i * interval '1 microsecond',
				       CASE WHEN i % $3 = 0 THEN 'task.created'
				            ELSE 'disbursement.funding.status-changed' END,
				       partner_uid, merchant_uid, application_uid, i, 'disbursement/1', 'BENCH', $4
				  FROM generate_series(1, $2::integer) AS i
				  JOIN home ON place = CASE WHEN i % 2 = 0 THEN 0 ELSE i / 2 % cardinality($1) END
				RETURNING event_uid, occurred_at, merchant_uid, application_uid, kind
			)
			INSERT INTO feed (position, event_uid, occurred_at, merchant_uid, application_uid, kind)
			SELECT (SELECT position FROM feed_head) + row_number() OVER (ORDER BY occurred_at),
			       event_uid, occurred_at, merchant_uid, application_uid, kind
			  FROM event`, pq.Array(merchants), n, rareEvery, sampleBody)
		if err != nil {
			return err
		}
		return tx.GetContext(ctx, &head, `
			UPDATE feed_head SET position = (SELECT max(position) FROM feed) RETURNING position`)
	})
	if err != nil {
		return 0, fmt.Errorf("publishing %d events: %w", n, err)
	}
	return head, nil
}

// follower connects a client that has these merchants.
func (a *apiRun) follower(
	ctx context.Context, open *cleanup, merchants []uuid.UUID,
) (*caller, error) {
	return a.newClient(ctx, open, func(tx *postgres.Tx) (partner.Issued, error) {
		return a.harness.Partners.CreateClient(ctx, tx, partner.NewClient{
			PartnerUID: a.owner.partner, MerchantUIDs: merchants, Group: len(merchants) > 1,
		})
	})
}

// waking measures how long after an event's commit a request that waits for it is answered,
// compared with the same request when the event is already in the feed.
func (b *bench) waking(ctx context.Context, open *cleanup, a *apiRun) error {
	b.say("feed: %d calls that wait", b.sizes.visits)
	h := a.harness
	uids, err := h.applications(ctx, a.owner, opened, b.sizes.visits)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { h.Feed.Run(ctx) })
	running.Go(func() { h.Outbox.Run(ctx) })
	if err := h.Outbox.Drain(ctx); err != nil {
		return err
	}
	made, err := a.follower(ctx, open, []uuid.UUID{a.owner.merchant})
	if err != nil {
		return err
	}
	var woken, floor timing
	for _, uid := range uids {
		newest, err := h.Feed.Latest(ctx)
		if err != nil {
			return err
		}
		next := call{method: http.MethodGet, path: "/v2/events?wait=30&after=" + newest.String()}
		answered := make(chan error, 1)
		go func() { answered <- made.do(next) }()
		err = waitUntil(ctx, func() (bool, error) { return h.Feed.Waiting() == 1, nil })
		if err != nil {
			return err
		}
		if err := h.drawOn(ctx, a.owner, []uuid.UUID{uid}); err != nil {
			return err
		}
		took, err := measured(func() error { return <-answered })
		if err != nil {
			return err
		}
		woken.each = append(woken.each, took)
		if took, err = measured(func() error { return made.do(next) }); err != nil {
			return err
		}
		floor.each = append(floor.each, took)
	}
	b.report.addTimes(row{
		Section: "a call that waits at the feed", FloorName: "the call when the event is there",
		Name: "from the commit's return to the answer",
	}, woken, floor, share{"p50", 0.5, ""}, share{"p99", 0.99, "< 50 ms"})
	return nil
}
