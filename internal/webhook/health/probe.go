package health

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

const (
	// probeTimeout bounds a probe.
	probeTimeout = 10 * time.Second
	// probeEvery is the time between two probes of an endpoint, probeAgain the time after
	// one that failed; up to a fifth of jitter is added to each.
	probeEvery = time.Hour
	probeAgain = 5 * time.Minute
	// probeLease is how long a probe stays claimed by the process that took it.
	probeLease = 5 * time.Minute
	// probeBatch bounds one batch of probes, probesAtOnce those in flight.
	probeBatch   = 100
	probesAtOnce = 8
	// probeHistory is how many changes a subscription's page shows.
	probeHistory = 20
)

// ProbeRecord is the last probe of a subscription's endpoint.
type ProbeRecord struct {
	sender.Probe
	Subscription uuid.UUID `db:"subscription_uid"`
	// At is when it was made, zero before the first; NextAt when the next is due.
	At     time.Time `db:"-"`
	NextAt time.Time `db:"next_at"`
	// Failures counts the probes in a row that failed.
	Failures int
}

// ProbeChange is a change in what the probes of an endpoint find.
type ProbeChange struct {
	At      time.Time `db:"at"`
	Finding string    `db:"finding"`
}

// ProbeDue probes the endpoints that are due: those of active and failing subscriptions
// once an hour, sooner after a failure or a change of the URL. It returns the results.
// Processes that call it at the same time probe different endpoints.
func (s *Service) ProbeDue(ctx context.Context) ([]ProbeRecord, error) {
	targets, err := s.takeProbes(ctx)
	if err != nil {
		return nil, err
	}
	records := make([]ProbeRecord, len(targets))
	errs := make([]error, len(targets))
	slots := make(chan struct{}, probesAtOnce)
	var group sync.WaitGroup
	for i, target := range targets {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			records[i], errs[i] = s.probe(ctx, target)
		})
	}
	group.Wait()
	return records, errors.Join(errs...)
}

// ProbeNow probes one subscription's endpoint at once. Error: NOT_FOUND.
func (s *Service) ProbeNow(ctx context.Context, uid uuid.UUID) (ProbeRecord, error) {
	var target probeTarget
	err := s.DB.GetContext(ctx, &target, `
		SELECT subscription_uid, url
		  FROM subscriptions
		 WHERE subscription_uid = $1
		   AND state <> 'deleted'`, uid)
	err = postgres.RowError(err, subscription.NotFound(uid), "loading subscription %s", uid)
	if err != nil {
		return ProbeRecord{}, err
	}
	return s.probe(ctx, target)
}

// probeTarget is an endpoint to probe.
type probeTarget struct {
	Subscription uuid.UUID `db:"subscription_uid"`
	URL          string    `db:"url"`
}

// takeProbes claims the endpoints that are due. A new subscription is not probed for an
// hour: its first events and tests show more, and an endpoint being tried out gets no
// requests it did not ask for. Its first probe falls at a random time in the five minutes
// after that, which spreads the probes of subscriptions created together.
func (s *Service) takeProbes(ctx context.Context) ([]probeTarget, error) {
	now := s.DB.Now().UTC()
	_, err := s.DB.ExecContext(ctx, `
		INSERT INTO probes (subscription_uid, next_at)
		SELECT subscription_uid,
		       $1::timestamptz + interval '1 hour' + random() * interval '5 minutes'
		  FROM subscriptions s
		 WHERE state IN ('active', 'failing')
		   AND NOT EXISTS (SELECT FROM probes p WHERE p.subscription_uid = s.subscription_uid)
		    ON CONFLICT DO NOTHING`, now)
	if err != nil {
		return nil, fmt.Errorf("adding endpoints to probe: %w", err)
	}
	var targets []probeTarget
	err = s.DB.SelectContext(ctx, &targets, `
		WITH due AS (
			SELECT p.subscription_uid, s.url
			  FROM probes p
			  JOIN subscriptions s USING (subscription_uid)
			 WHERE s.state IN ('active', 'failing')
			   AND (p.next_at <= $1::timestamptz
			        OR p.url NOT IN ('', s.url)
			           AND p.next_at > $1::timestamptz + $2::interval)
			 ORDER BY p.next_at
			 LIMIT $3
			   FOR UPDATE OF p SKIP LOCKED
		)
		UPDATE probes p
		   SET next_at = $1::timestamptz + $2::interval
		  FROM due
		 WHERE p.subscription_uid = due.subscription_uid
		RETURNING p.subscription_uid, due.url`,
		now, fmt.Sprintf("%d seconds", int(probeLease.Seconds())), probeBatch)
	if err != nil {
		return nil, fmt.Errorf("taking endpoints to probe: %w", err)
	}
	return targets, nil
}

func (s *Service) probe(ctx context.Context, target probeTarget) (ProbeRecord, error) {
	at := s.DB.Now().UTC()
	probe := s.Sender.Probe(ctx, target.URL, probeTimeout, true)
	if ctx.Err() != nil {
		return ProbeRecord{}, fmt.Errorf("probing %s: %w", target.Subscription, context.Cause(ctx))
	}
	record := ProbeRecord{Probe: probe, Subscription: target.Subscription, At: at}
	wait := probeEvery
	if probe.Class != "" {
		wait = probeAgain
	}
	record.NextAt = at.Add(wait + rand.N(wait/5)) //nolint:gosec // nobody gains by guessing it
	err := s.DB.InTx(ctx, func(tx *postgres.Tx) error { return saveProbe(ctx, tx, &record) })
	return record, err
}

// saveProbe stores the probe as the last one, and its finding if that has changed.
func saveProbe(ctx context.Context, tx *postgres.Tx, r *ProbeRecord) error {
	address := ""
	if r.Address.IsValid() {
		address = r.Address.String()
	}
	err := tx.GetContext(ctx, &r.Failures, `
		INSERT INTO probes AS p (subscription_uid, next_at, url, probed_at, error_class, error,
		       address, http_status, location, protocol, tls_version, certificate_issuer,
		       certificate_expires, dns_us, connect_us, tls_us, first_byte_us, total_us, failures)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
		ON CONFLICT (subscription_uid) DO UPDATE
		   SET next_at = excluded.next_at, url = excluded.url, probed_at = excluded.probed_at,
		       error_class = excluded.error_class, error = excluded.error,
		       address = excluded.address, http_status = excluded.http_status,
		       location = excluded.location, protocol = excluded.protocol,
		       tls_version = excluded.tls_version,
		       certificate_issuer = excluded.certificate_issuer,
		       certificate_expires = excluded.certificate_expires, dns_us = excluded.dns_us,
		       connect_us = excluded.connect_us, tls_us = excluded.tls_us,
		       first_byte_us = excluded.first_byte_us, total_us = excluded.total_us,
		       failures = excluded.failures
		           * CASE WHEN excluded.url = p.url THEN p.failures + 1 ELSE 1 END
		RETURNING failures`,
		r.Subscription, r.NextAt, r.URL, r.At, postgres.OrNull(string(r.Class)), r.Error, address,
		postgres.OrNull(r.Status), r.Location, r.Protocol, r.TLSVersion, r.Issuer,
		postgres.OrNull(r.Expires), postgres.Micros(r.Timings.DNS),
		postgres.Micros(r.Timings.Connect), postgres.Micros(r.Timings.TLS),
		postgres.Micros(r.Timings.FirstByte), postgres.Micros(r.Timings.Total), min(len(r.Class), 1))
	if err != nil {
		return fmt.Errorf("saving the probe of subscription %s: %w", r.Subscription, err)
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO probe_changes (subscription_uid, at, finding)
		SELECT $1, $2, $3
		 WHERE $3 IS DISTINCT FROM (
		           SELECT finding
		             FROM probe_changes
		            WHERE subscription_uid = $1
		            ORDER BY at DESC
		            LIMIT 1)
		    ON CONFLICT DO NOTHING`, r.Subscription, r.At, r.Finding())
	if err != nil {
		return fmt.Errorf("keeping what the probe of %s found: %w", r.Subscription, err)
	}
	return nil
}
