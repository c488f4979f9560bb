package seed

// makeClients gives every partner two clients, each for all of its merchants. Nobody knows their
// secrets, and their ids share a prefix. $1 is their time of creation.
const makeClients = `
	WITH made AS (
		INSERT INTO clients (client_id, partner_uid, is_group, secret_hash, created_at)
		SELECT 'dbc_5eed' || lpad((2 * place + n)::text, 28, '0'), partner_uid, true,
		       sha256(convert_to(gen_random_uuid()::text, 'UTF8')), $1
		  FROM (SELECT partner_uid, row_number() OVER (ORDER BY partner_uid) - 1 AS place
		          FROM partners WHERE name LIKE '%(seed %') p
		 CROSS JOIN generate_series(1, 2) AS n
		    ON CONFLICT DO NOTHING
		RETURNING client_id, partner_uid
	)
	INSERT INTO client_merchants (client_id, merchant_uid, partner_uid)
	SELECT client_id, merchant_uid, partner_uid FROM made JOIN merchants USING (partner_uid)`

// makeProducts makes three products, the last of which is rarely chosen.
const makeProducts = `
	INSERT INTO products (product_uid, code, name, term, interest_rate, merchant_fee_percentage,
	                      schedule, min_amount, max_amount, created_at)
	SELECT drawbridge_uid($1::timestamptz), 'SEED-' || n,
	       (ARRAY['Roof in three stages', 'Solar in three stages',
	              'Heat pump in three stages'])[n], '120', 7.99,
	       3.75, '40,40,20', 1000, 100000, $1
	  FROM generate_series(1, 3) AS n
	    ON CONFLICT DO NOTHING`

// makeRequestDays makes the partitions of $1 days of the request log before $2.
const makeRequestDays = `
	SELECT drawbridge_make_request_partitions(
	       $2::timestamptz - make_interval(days => $1::integer), $1::integer + 3)`

// makeRequests logs $1 requests from $2 to $3. A few clients send most of them; one in twenty is
// refused, most of these with status 500 for a pending draw, and one in five hundred fails.
const makeRequests = `
	WITH callers AS MATERIALIZED (
		SELECT row_number() OVER (ORDER BY md5(client_id)) AS place, client_id, partner_uid,
		       (SELECT count(*) FROM seed_applications a
		         WHERE a.partner_uid = c.partner_uid) AS applications
		  FROM clients c
		 WHERE client_id LIKE 'dbc_5eed%'
	), picked AS MATERIALIZED (
		SELECT n, 1 + floor(power(random(), 2) * (SELECT count(*) FROM callers))::bigint AS place,
		       $2::timestamptz + random() * ($3::timestamptz - $2::timestamptz) AS at,
		       random() AS fate, random() AS kind, random() AS whose
		  FROM generate_series(1, $1::integer) AS n
	)
	INSERT INTO api_requests (request_uid, at, request_id, method, route, path, client_id,
	                          authenticated, partner_uid, merchant_uid, application_uid, status,
	                          error_code, idempotency_key, replayed, duration_us, bytes_in,
	                          bytes_out, address, user_agent)
	SELECT drawbridge_uid(p.at), p.at, 'seed-request-' || n,
	       CASE WHEN kind < 0.7 THEN 'GET' ELSE 'POST' END,
	       CASE WHEN kind < 0.7 THEN '/api/v2/loan/:uid'
	            WHEN kind < 0.9 THEN '/api/v2/loan/:uid/request-draw'
	            ELSE '/api/v2/application' END,
	       CASE WHEN kind < 0.7 THEN '/api/v2/loan/' || a.application_uid
	            WHEN kind < 0.9 THEN '/api/v2/loan/' || a.application_uid || '/request-draw'
	            ELSE '/api/v2/application' END, c.client_id, true, c.partner_uid, a.merchant_uid,
	       a.application_uid,
	       CASE WHEN fate < 0.002 THEN 500 WHEN fate < 0.02 THEN 400
	            WHEN fate < 0.0201 THEN 422 WHEN fate < 0.05 THEN 500 ELSE 200 END,
	       CASE WHEN fate < 0.002 THEN 'INTERNAL' WHEN fate < 0.02 THEN 'VALIDATION_ERROR'
	            WHEN fate < 0.0201 THEN 'IDEMPOTENCY_MISMATCH'
	            WHEN fate < 0.05 THEN 'DRAW_PENDING' END,
	       CASE WHEN kind >= 0.7 THEN 'seed-key-' || n END, false,
	       3000 + floor(whose * 40000)::bigint, CASE WHEN kind < 0.7 THEN 0 ELSE 200 END,
	       900, '203.0.113.20', 'seed/1.0'
	  FROM picked p
	  JOIN callers c USING (place)
	  JOIN seed_applications a ON a.partner_uid = c.partner_uid
	   AND a.place = 1 + floor(power(p.whose, 1.5) * c.applications)::bigint`

// makeAudit writes $1 audit entries from $2 to $3 about existing rows: the later an entry, the
// newer its subject.
const makeAudit = `
	WITH there AS MATERIALIZED (
		SELECT 1 AS kind, resend_of::text AS subject, created_at AS at
		  FROM deliveries
		 WHERE resend_of IS NOT NULL
		 UNION ALL
		SELECT 3, application_uid::text, created_at FROM applications
		 UNION ALL
		SELECT 4, subscription_uid::text, created_at FROM subscriptions
		 UNION ALL
		SELECT 5, email_uid::text, created_at FROM emails
	), known AS (
		SELECT kind, subject, at, row_number() OVER (PARTITION BY kind ORDER BY at, subject) AS place
		  FROM there
	), made AS MATERIALIZED (
		SELECT n, 1 + floor(power(random(), 2) * 6)::integer AS kind,
		       (ARRAY['sam', 'olga', 'jonas', 'maria', 'wei', 'amara', 'lucas', 'priya', 'nadia', 'tom'
		             ])[1 + floor(power(random(), 3) * 10)::integer] || '@lender.example' AS actor
		  FROM generate_series(1, $1::integer) AS n
	), placed AS (
		SELECT m.n, m.kind, m.actor, ceil(t.total * m.n::numeric / $1::integer)::bigint AS place
		  FROM made m
		  LEFT JOIN (SELECT kind, count(*) AS total FROM there GROUP BY kind) t USING (kind)
	)
	INSERT INTO audit_log (at, actor, address, action, subject_kind, subject, reason)
	SELECT least($3::timestamptz, greatest(k.at,
	         $2::timestamptz + m.n * ($3::timestamptz - $2::timestamptz) / $1::integer)), m.actor,
	       '203.0.113.30',
	       (ARRAY['delivery.resend', 'user.sign_in', 'application.status',
	              'subscription.test', 'email.resend', 'settings.retention'])[m.kind],
	       (ARRAY['delivery', 'user', 'application', 'subscription', 'email', 'settings'])[m.kind],
	       CASE m.kind WHEN 2 THEN m.actor WHEN 6 THEN 'retention' ELSE k.subject END,
	       (ARRAY['The partner asked for it', '', 'The borrower called', '',
	              'The first one did not arrive', 'Yearly review'])[m.kind]
	  FROM placed m
	  LEFT JOIN known k USING (kind, place)
	 WHERE m.kind IN (2, 6) OR k.subject IS NOT NULL
	 ORDER BY 1, m.n`

// makeAlerts makes $1 alerts that needed a person from $2 to $3, of which one in eight is still
// open, or none if $4 is set.
const makeAlerts = `
	INSERT INTO attention_items (item_uid, kind, subject, subscription_uid, severity, detail,
	                             count, opened_at, last_seen_at, owner, closed_at, closed_by)
	SELECT drawbridge_uid(at), (ARRAY['delivery_used_up', 'subscription_failing', 'probe_failed',
	       'outcome_unknown', 'never_succeeded'])[kind],
	       'seed-' || gen_random_uuid(), subscription_uid, 'problem',
	       (ARRAY['Every attempt failed. Nothing is sent again by itself.',
	              'Every attempt has failed for a while. Sending goes on. Last error: HTTP 503',
	              'The endpoint cannot be reached: connection refused.',
	              'A process stopped during an attempt; whether the event arrived is not known.',
	              'Nothing has arrived at this endpoint since it was created.'])[kind], 3, at, at,
	       CASE WHEN n % 3 = 0 THEN 'sam@lender.example' ELSE '' END,
	       CASE WHEN closed THEN least(at + interval '2 hours', $3::timestamptz) END,
	       CASE WHEN closed THEN 'system' ELSE '' END
	  FROM (SELECT n, 1 + floor(power(random(), 2) * 5)::integer AS kind, $4 OR n % 8 > 0 AS closed,
	               $2::timestamptz + random() * ($3::timestamptz - $2::timestamptz) AS at
	          FROM generate_series(1, $1::integer) AS n) made
	  JOIN (SELECT row_number() OVER (ORDER BY place) - 1 AS place, subscription_uid,
	               count(*) OVER () AS total FROM seed_subscriptions) s ON s.place = n % s.total`

// makeAlarms opens the alerts that the watch would have raised by now: one for each failing
// subscription, and one for each whose deliveries used up their attempts in the last day.
const makeAlarms = `
	WITH lost AS (
		SELECT subscription_uid, count(*) AS n, min(finished_at) AS since, max(finished_at) AS last
		  FROM deliveries
		 WHERE state = 'failed'
		   AND made_good_by IS NULL
		   AND NOT test
		   AND created_at > $1::timestamptz - interval '1 day'
		 GROUP BY subscription_uid
	)
	INSERT INTO attention_items (item_uid, kind, subject, subscription_uid, severity, detail,
	                             count, opened_at, last_seen_at)
	SELECT drawbridge_uid(opened), kind, subscription_uid::text, subscription_uid, 'problem', detail,
	       n, opened, last
	  FROM (SELECT h.subscription_uid, 'subscription_failing' AS kind, h.failures AS n,
	               h.failing_since + interval '15 minutes' AS opened, h.last_failure_at AS last,
	               'Every attempt has failed for a while. Sending goes on. Last error: ' ||
	               h.last_error AS detail
	          FROM subscription_health h
	          JOIN seed_subscriptions s USING (subscription_uid)
	         WHERE s.state = 'failing'
	           AND h.failing_since < $1::timestamptz - interval '1 hour'
	         UNION ALL
	        SELECT subscription_uid, 'delivery_used_up', l.n, since, last,
	               'Every attempt failed. Nothing is sent again by itself.'
	          FROM lost l
	          JOIN seed_subscriptions s USING (subscription_uid)
	         WHERE l.n >= 3) found
	    ON CONFLICT DO NOTHING`

// makeBulks makes $1 ended bulk re-sends from $2 to $3. The first of each partner contains the
// partner's re-sends.
const makeBulks = `
	WITH resent AS MATERIALIZED (
		SELECT d.delivery_uid, d.created_at, d.subscription_uid, d.event_uid, d.event_at, d.event,
		       d.application_uid, d.status, d.test, d.resend_of, s.partner_uid,
		       o.created_at AS failed_at
		  FROM deliveries d
		  JOIN deliveries o ON o.delivery_uid = d.resend_of
		  JOIN subscriptions s ON s.subscription_uid = d.subscription_uid
		  JOIN partners p ON p.partner_uid = s.partner_uid
		 WHERE d.resend_of IS NOT NULL
		   AND p.name LIKE '%(seed %'
		   AND NOT EXISTS (SELECT FROM bulk_resend_items i WHERE i.new_uid = d.delivery_uid)
	), chosen AS MATERIALIZED (
		SELECT drawbridge_uid(at) AS bulk_uid, partner_uid, n, at,
		       (n - 1) / s.total = 0 AS is_first
		  FROM (SELECT n, $2::timestamptz + random() * ($3::timestamptz - $2::timestamptz) AS at
		          FROM generate_series(1, $1::integer) AS n) made
		  JOIN (SELECT row_number() OVER (ORDER BY p.name) - 1 AS place, partner_uid,
		               count(*) OVER () AS total
		          FROM partners p
		         WHERE p.partner_uid IN (SELECT partner_uid FROM resent)) s
		    ON s.place = (n - 1) % s.total
	), made AS (
		INSERT INTO bulk_resends (bulk_uid, partner_uid, kind, scope, pace, state, reason,
		                          created_by, created_at, confirmed_by, confirmed_at, settled_at,
		                          ended_at)
		SELECT bulk_uid, partner_uid, 'recover', '{}', 20,
		       CASE WHEN n % 9 = 0 AND NOT is_first THEN 'cancelled' ELSE 'finished' END,
		       'partner asked', 'sam@lender.example', at, 'sam@lender.example', at, at,
		       at + interval '10 minutes'
		  FROM chosen
	), targets AS (
		INSERT INTO bulk_resend_lanes (bulk_uid, subscription_uid, partner_uid, paced_at, moved_at,
		                               delivered)
		SELECT bulk_uid, subscription_uid, partner_uid, at, at, count(*)
		  FROM chosen JOIN resent USING (partner_uid)
		 WHERE is_first
		 GROUP BY bulk_uid, subscription_uid, partner_uid, at
	)
	INSERT INTO bulk_resend_items (bulk_uid, position, subscription_uid, event_uid, event_at, event,
	                               application_uid, status, test, delivery_uid,
	                               delivery_created_at, state, new_uid, new_created_at)
	SELECT bulk_uid, row_number() OVER (PARTITION BY bulk_uid ORDER BY event_at, event_uid),
	       subscription_uid, event_uid, event_at, event, application_uid, status, test, resend_of,
	       failed_at, 'delivered', delivery_uid, created_at
	  FROM chosen JOIN resent USING (partner_uid)
	 WHERE is_first`
