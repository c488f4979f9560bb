package seed_test

import (
	"testing"

	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/seed"
)

func TestFill(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	totals, err := seed.Fill(t.Context(), db, seed.Plan{
		Deliveries: 4000, Attempts: 6000, Partners: 12,
	})
	if err != nil {
		t.Fatal(err)
	}
	if totals.Deliveries != 4000 || totals.Partners != 12 ||
		totals.Attempts < 5400 || totals.Attempts > 6600 {
		t.Errorf("made %+v", totals)
	}
	var odd []string
	err = db.Select(&odd, `
		SELECT 'a delivery without its event' FROM deliveries d
		 WHERE NOT EXISTS (SELECT 1 FROM events e
		                    WHERE e.event_uid = d.event_uid AND e.occurred_at = d.event_at)
		UNION ALL
		SELECT 'an attempt count that is not that of the attempts' FROM deliveries d
		 WHERE attempt_count <> (SELECT count(*) FROM attempts a WHERE a.delivery_uid = d.delivery_uid)
		UNION ALL
		SELECT 'a delivery of an event that was not chosen'
		  FROM deliveries d JOIN subscriptions s USING (subscription_uid)
		 WHERE NOT s.events && ARRAY['all', d.event]
		UNION ALL
		SELECT 'an attempt at another address than the subscription has'
		  FROM attempts a JOIN deliveries d USING (delivery_uid)
		  JOIN subscriptions s USING (subscription_uid)
		 WHERE a.url <> s.url
		UNION ALL
		SELECT 'an attempt count that is not that of the e-mail attempts' FROM emails e
		 WHERE attempt_count <> (SELECT count(*) FROM email_attempts a WHERE a.email_uid = e.email_uid)
		UNION ALL
		SELECT 'a loan of an offer that was not made' FROM loans l
		 WHERE NOT EXISTS (SELECT 1 FROM offers o WHERE o.application_uid = l.application_uid
		                                            AND o.product_uid = l.product_uid)
		UNION ALL
		SELECT 'an application whose events have gaps' FROM applications a
		 WHERE (SELECT (count(*), coalesce(max(sequence), 0), count(DISTINCT sequence))
		          FROM events e WHERE e.application_uid = a.application_uid)
		       <> (last_sequence, last_sequence, last_sequence)
		UNION ALL
		SELECT 'an event before the one that it follows'
		  FROM events e JOIN events f USING (application_uid)
		 WHERE f.sequence = e.sequence + 1 AND f.occurred_at <= e.occurred_at
		UNION ALL
		SELECT 'an event that the feed does not have' FROM events e
		 WHERE sequence IS NOT NULL
		   AND NOT EXISTS (SELECT FROM feed f WHERE f.event_uid = e.event_uid)
		UNION ALL
		SELECT 'a place in the feed that is free' FROM feed_head
		 WHERE position <> (SELECT count(*) FROM feed) OR position <> (SELECT max(position) FROM feed)
		UNION ALL
		SELECT 'a body that tells another time' FROM events
		 WHERE convert_from(body, 'UTF8')::json ->> 'timestamp' <>
		       to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
		UNION ALL
		SELECT 'an application that its events do not tell of' FROM applications a
		 WHERE status <> coalesce((SELECT status FROM events e
		                            WHERE e.application_uid = a.application_uid
		                              AND kind = 'application.status.update'
		                            ORDER BY sequence DESC LIMIT 1), 'Pending Review')
		UNION ALL
		SELECT 'a subject that is not there' FROM events
		 WHERE sequence IS NOT NULL
		   AND split_part(subject, '/', 2) NOT IN (
		       SELECT application_uid::text FROM applications UNION ALL
		       SELECT task_uid::text FROM tasks UNION ALL
		       SELECT merchant_disbursement_id::text FROM disbursements)
		UNION ALL
		SELECT 'a draw of which the money is not drawn' FROM loans l
		 WHERE drawn_amount <> coalesce((SELECT sum(gross_amount) FROM disbursements d
		                                  WHERE d.application_uid = l.application_uid
		                                    AND status NOT IN ('CANCELLED', 'RETURNED')), 0)
		UNION ALL
		SELECT 'something that is still to come' FROM disbursements
		 WHERE greatest(requested_at, processing_at, settled_at, cancelled_at, returned_at) > now()
		UNION ALL
		SELECT 'an attempt that is still to come' FROM attempts
		 WHERE started_at + duration_us * interval '1 microsecond' > now()
		UNION ALL
		SELECT 'an entry of the audit log about nothing' FROM audit_log
		 WHERE subject_kind IN ('delivery', 'application', 'subscription', 'email')
		   AND subject NOT IN (
		       SELECT delivery_uid::text FROM deliveries UNION ALL
		       SELECT application_uid::text FROM applications UNION ALL
		       SELECT subscription_uid::text FROM subscriptions UNION ALL
		       SELECT email_uid::text FROM emails)
		UNION ALL
		SELECT 'an entry of the audit log about what was to come' FROM audit_log e
		  JOIN (SELECT delivery_uid::text AS subject, created_at FROM deliveries UNION ALL
		        SELECT application_uid::text, created_at FROM applications UNION ALL
		        SELECT subscription_uid::text, created_at FROM subscriptions UNION ALL
		        SELECT email_uid::text, created_at FROM emails) s USING (subject)
		 WHERE e.at < s.created_at
		UNION ALL
		SELECT 'a client that has no page: ' || client_id FROM clients
		 WHERE client_id !~ '^dbc_[0-9a-f]{32}$'
		UNION ALL
		SELECT 'a re-send of nothing' FROM deliveries d
		 WHERE resend_of IS NOT NULL
		   AND NOT EXISTS (SELECT 1 FROM deliveries o WHERE o.delivery_uid = d.resend_of)
		 LIMIT 5`)
	if err != nil || len(odd) > 0 {
		t.Errorf("there is %q, %v", odd, err)
	}
	var uncounted int
	err = db.Get(&uncounted, `
		SELECT abs((SELECT count(*) FROM attempts JOIN deliveries USING (delivery_uid) WHERE NOT test) -
		           (SELECT sum(attempts) FROM subscription_hours)) +
		       abs((SELECT sum(succeeded) FROM subscription_hours) -
		           (SELECT sum(n) FROM subscription_hours, unnest(latency) AS n)) +
		       abs((SELECT sum(attempts - succeeded) FROM traffic WHERE unit = 'hour') -
		           (SELECT sum(attempts) FROM subscription_errors))`)
	if err != nil || uncounted != 0 {
		t.Errorf("%d attempts are missing in the summaries, %v", uncounted, err)
	}
	var failing int
	err = db.Get(&failing, `
		SELECT count(*) FROM subscriptions JOIN subscription_health USING (subscription_uid)
		 WHERE state = 'failing' AND failures >= 10`)
	if err != nil || failing == 0 {
		t.Errorf("no subscription is failing by its own attempts, %v", err)
	}
	var draws int
	err = db.Get(&draws, `SELECT count(DISTINCT status) FROM disbursements`)
	if err != nil || draws != 5 {
		t.Errorf("draws are in %d states, %v", draws, err)
	}
	var kinds int
	if err := db.Get(&kinds, `SELECT count(DISTINCT (event, state)) FROM deliveries`); err != nil ||
		kinds < 15 {
		t.Errorf("only %d kinds of events and states, %v", kinds, err)
	}
}

func TestFillOfAFewDays(t *testing.T) {
	t.Parallel()
	for _, plan := range []seed.Plan{
		{Deliveries: 600, Attempts: 900, Partners: 4, Days: 3},
		{Deliveries: 40, Attempts: 50, Partners: 2, Days: 1},
		{Deliveries: 3000, Attempts: 3300, Partners: 5, Days: 30},
	} {
		totals, err := seed.Fill(t.Context(), pgtest.New(t), plan)
		if err != nil || totals.Deliveries != plan.Deliveries {
			t.Errorf("%+v made %d deliveries, %v", plan, totals.Deliveries, err)
		}
	}
}

func TestFillMakesLikeRowsEveryTime(t *testing.T) {
	t.Parallel()
	var made [2]string
	for i := range made {
		db := pgtest.New(t)
		plan := seed.Plan{Deliveries: 2000, Attempts: 3000, Partners: 5}
		if _, err := seed.Fill(t.Context(), db, plan); err != nil {
			t.Fatal(err)
		}
		err := db.GetContext(t.Context(), &made[i], `
			SELECT string_agg(line, '; ' ORDER BY line)
			  FROM (SELECT concat_ws(' ', status, count(*)) AS line FROM applications GROUP BY status
			         UNION ALL
			        SELECT concat_ws(' ', p.name, m.name, count(*))
			          FROM applications JOIN merchants m USING (merchant_uid)
			          JOIN partners p ON p.partner_uid = m.partner_uid GROUP BY p.name, m.name
			         UNION ALL
			        SELECT concat_ws(' ', s.url, d.state, d.attempt_count, count(*))
			          FROM deliveries d JOIN subscriptions s USING (subscription_uid)
			         GROUP BY s.url, d.state, d.attempt_count
			         UNION ALL
			        SELECT concat_ws(' ', action, count(*)) FROM audit_log GROUP BY action) lines`)
		if err != nil {
			t.Fatal(err)
		}
	}
	if made[0] != made[1] {
		t.Errorf("first %s, then %s", made[0], made[1])
	}
}
