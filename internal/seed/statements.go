package seed

// makePartners: $1 is the number of partners, $2 the start of the span. The marks in names
// identify what the seed made.
const makePartners = `
	INSERT INTO partners (partner_uid, name, created_at)
	SELECT drawbridge_uid($2::timestamptz + n * interval '1 second'),
	       (ARRAY['Sunvolt', 'Bluepeak', 'Harvest', 'Northwind', 'Copperline', 'Evergreen',
	              'Lakeshore', 'Granite', 'Meridian', 'Pinecrest'])[1 + n % 10] || ' ' ||
	       (ARRAY['Energy', 'Roofing', 'Homes', 'Solar', 'Windows', 'Heating'])[1 + n % 6] ||
	       ' (seed ' || n || ')',
	       $2::timestamptz + n * interval '1 second'
	  FROM generate_series(1, $1::integer) AS n`

// makeMerchants gives every partner one to six merchants.
//
//nolint:unqueryvet // the inner rows are picked from by name outside
const makeMerchants = `
	INSERT INTO merchants (merchant_uid, partner_uid, name, created_at)
	SELECT drawbridge_uid($1::timestamptz), p.partner_uid,
	       split_part(p.name, ' (', 1) || ' ' ||
	       (ARRAY['Phoenix', 'Tucson', 'Mesa', 'Austin', 'Denver', 'Reno'])[n], $1
	  FROM (SELECT *, row_number() OVER (ORDER BY partner_uid) AS place
	          FROM partners WHERE name LIKE '%(seed %') p
	 CROSS JOIN LATERAL generate_series(1, 1 + p.place % 6) AS n`

// makeSubscriptions gives every partner one to three subscriptions.
//
//nolint:unqueryvet // the inner rows are picked from by name outside
const makeSubscriptions = `
	WITH made AS (
		INSERT INTO subscriptions (subscription_uid, partner_uid, url, auth, events,
		                           all_merchants, state, created_at, updated_at)
		SELECT drawbridge_uid($1::timestamptz), p.partner_uid,
		       'https://hooks' || n || '.partner' || p.place || '.example/drawbridge', 'none',
		       CASE WHEN n = 1 THEN ARRAY['all'] ELSE ARRAY['application.status.update',
		            'disbursement.funding.status-changed', 'disbursement.funding.settled'] END,
		       true, CASE WHEN p.place % 9 = 0 THEN 'failing'
		                  WHEN p.place % 13 = 0 THEN 'paused' ELSE 'active' END, $1, $1
		  FROM (SELECT *, row_number() OVER (ORDER BY partner_uid) AS place
		          FROM partners WHERE name LIKE '%(seed %') p
		 CROSS JOIN LATERAL generate_series(1, 1 + p.place % 3) AS n
		RETURNING subscription_uid, url, auth, events
	)
	INSERT INTO subscription_versions (subscription_uid, version, url, auth, events,
	                                   merchant_uids, change, changed_by, changed_at)
	SELECT subscription_uid, 1, url, auth, events, '{}', 'created', 'seed', $1 FROM made`

// makeApplications: $1 is the number of applications, from $2 until $3, more of them lately. The
// same few merchants always have most.
const makeApplications = `
	WITH m AS (
		SELECT m.*, row_number() OVER (ORDER BY md5(p.name || m.name)) AS place,
		       count(*) OVER () AS total
		  FROM merchants m JOIN partners p USING (partner_uid) WHERE p.name LIKE '%(seed %'
	), picked AS MATERIALIZED (
		SELECT n, 1 + floor(power(random(), 2.5) * (SELECT max(total) FROM m))::bigint AS place,
		       $3::timestamptz - power(1 - (n - random()) / $1::integer, 1.2) *
		           ($3::timestamptz - $2::timestamptz) AS at
		  FROM generate_series(1, $1::integer) AS n
	)
	INSERT INTO applications (application_uid, merchant_uid, partner_uid, source, status,
	                          communications, external_reference, requested_amount,
	                          borrower_first_name, borrower_last_name, borrower_email,
	                          project_name, created_at, updated_at)
	SELECT drawbridge_uid(at), m.merchant_uid, m.partner_uid, 'partner', 'Pending Review',
	       CASE WHEN n % 3 = 0 THEN 'paused' ELSE 'enabled' END, 'SEED-' || n,
	       4000 + n * 7919 % 46000,
	       (ARRAY['Ana', 'James', 'Mei', 'Luis', 'Fatima', 'Erik', 'Priya', 'Daniel', 'Chloe', 'Omar',
	              'Grace', 'Mateo', 'Ines', 'Samuel', 'Noor', 'Hannah', 'Victor'])[1 + n % 17],
	       (ARRAY['Lima', 'Walker', 'Chen', 'Ortega', 'Haddad', 'Lindqvist', 'Raman', 'Okafor',
	              'Dubois', 'Nguyen', 'Miller', 'Rossi', 'Kowalski', 'Brooks', 'Silva', 'Hughes',
	              'Petrov', 'Sato', 'Keller'])[1 + n % 19], 'borrower' || n || '@seed.example',
	       (ARRAY['Roof', 'Solar roof', 'Heat pump', 'Windows', 'Carport'])[1 + n % 5] || ' ' || n,
	       at, at
	  FROM picked JOIN m USING (place)`

// makeEmails gives every second application an e-mail with one attempt, until $1.
//
//nolint:unqueryvet // the inner rows are picked from by name outside
const makeEmails = `
	WITH made AS (
		INSERT INTO emails (email_uid, application_uid, kind, to_name, to_address, params, state,
		                    reason, attempt_count, subject, text_body, html_body, source, rendered_at,
		                    created_at, finished_at)
		SELECT drawbridge_uid(created_at), application_uid,
		       (ARRAY['welcome', 'stipulation', 'task'])[1 + length(external_reference) % 3],
		       borrower_first_name, borrower_email, '{}',
		       CASE WHEN refused THEN 'failed' ELSE 'sent' END,
		       CASE WHEN refused THEN 'the mail server refused it for good: 550 no such mailbox'
		            ELSE '' END,
		       1, 'Your application', said,
		       '<!doctype html><html lang="en"><head><title>Your application</title></head><body>' ||
		       '<main><h1>Your application</h1><p>' || said || '</p></main></body></html>',
		       'Subject: Your application' || E'\r\n' || 'To: ' || borrower_email || E'\r\n\r\n' || said,
		       created_at, created_at, created_at
		  FROM (SELECT a.*, requested_amount::integer % 40 = 0 AS refused,
		               'Hello ' || borrower_first_name || ', your application for ' || project_name ||
		               ' has reached us. You will hear from us by e-mail as it moves on.' AS said
		          FROM applications a) app
		 WHERE external_reference LIKE 'SEED-%'
		   AND borrower_email LIKE '%@seed.example'
		   AND created_at < $1
		   AND requested_amount::integer % 2 = 0
		    ON CONFLICT DO NOTHING
		RETURNING email_uid, state, created_at
	)
	INSERT INTO email_attempts (email_uid, number, started_at, handed_over_at, finished_at, outcome,
	                            stage, reply_code, reply, server)
	SELECT email_uid, 1, created_at, CASE WHEN state = 'sent' THEN created_at END, created_at,
	       CASE WHEN state = 'sent' THEN 'sent' ELSE 'permanent' END,
	       CASE WHEN state = 'sent' THEN 'hand_over' ELSE 'recipient' END,
	       CASE WHEN state = 'sent' THEN 250 ELSE 550 END,
	       CASE WHEN state = 'sent' THEN 'accepted' ELSE 'no such mailbox' END,
	       'mail.seed.example:587'
	  FROM made`

// makeScaffold numbers the subscriptions, overall and per partner, and the applications of each
// partner, so that statements can pick from them at random, and creates the table of events.
const makeScaffold = dropScaffold + `
	CREATE UNLOGGED TABLE seed_subscriptions AS
	SELECT row_number() OVER (ORDER BY md5(s.url)) AS place,
	       row_number() OVER (PARTITION BY s.partner_uid ORDER BY s.url) AS nth,
	       count(*) OVER (PARTITION BY s.partner_uid) AS total,
	       s.subscription_uid, s.partner_uid, s.url, s.state,
	       (SELECT count(*) FROM applications a WHERE a.partner_uid = s.partner_uid) AS applications
	  FROM subscriptions s JOIN partners p USING (partner_uid)
	 WHERE p.name LIKE '%(seed %';
	DELETE FROM seed_subscriptions WHERE applications = 0;
	CREATE UNLOGGED TABLE seed_applications AS
	SELECT partner_uid, row_number() OVER (PARTITION BY partner_uid ORDER BY application_uid) AS place,
	       application_uid, merchant_uid
	  FROM applications
	 WHERE external_reference LIKE 'SEED-%';
	CREATE UNIQUE INDEX ON seed_applications (partner_uid, place);
	CREATE UNLOGGED TABLE seed_events (
	    ordinal         bigint NOT NULL,
	    at              timestamptz NOT NULL,
	    event           text NOT NULL,
	    status          text NOT NULL,
	    application_uid uuid NOT NULL,
	    merchant_uid    uuid NOT NULL,
	    partner_uid     uuid NOT NULL,
	    reference       text NOT NULL,
	    n               integer NOT NULL,
	    k               integer NOT NULL,
	    test            boolean NOT NULL,
	    task_uid        uuid
	);
	ANALYZE seed_subscriptions, seed_applications`

const dropScaffold = `DROP TABLE IF EXISTS seed_subscriptions, seed_applications, seed_events;`

// makeDeliveries records the $2 events after the first $1 and delivers each to one subscription
// of its partner, all before $3. $4 is the share that uses up its attempts, $5 the share that
// needs two. One subscription in eight fails far more often than others, one in nine is slow,
// and failing ones have lost everything since $7. Retrying deliveries are due in ten years,
// because a worker would send them if due sooner. With $6 there are none.
const makeDeliveries = `
	WITH picked AS MATERIALIZED (
		SELECT e.*, random() AS fate, random() AS code, random() AS odd, random() AS pace,
		       power(random(), 1.5) AS whose
		  FROM seed_events e
		 WHERE ordinal > $1::bigint
		   AND ordinal <= $1::bigint + $2::bigint
	), routed AS MATERIALIZED (
		SELECT p.*, s.subscription_uid, s.url, s.state AS health, s.place,
		       drawbridge_uid(p.at) AS event_uid, drawbridge_uid(p.at) AS delivery_uid,
		       CASE WHEN s.state = 'failing' AND p.at > $7::timestamptz THEN 3
		            WHEN p.fate < $4::float8 * CASE WHEN s.place % 8 = 3 THEN 5 ELSE 0.43 END THEN 3
		            WHEN p.fate > 1 - $5::float8 THEN 2 ELSE 1 END AS attempts
		  FROM picked p
		  JOIN seed_subscriptions s ON s.partner_uid = p.partner_uid
		   AND s.nth = CASE WHEN p.event IN ('application.status.update', 'disbursement.funding.settled',
		                                     'disbursement.funding.status-changed')
		                    THEN 1 + floor(p.whose * s.total)::bigint ELSE 1 END
	), staged AS MATERIALIZED (
		SELECT r.*,
		       CASE WHEN attempts < 3 THEN
		                 CASE WHEN odd BETWEEN 0.4 AND 0.401 THEN 'cancelled'
		                      WHEN NOT $6 AND at > $3::timestamptz - interval '1 hour'
		                           AND attempts = 2
		                      THEN 'retrying' ELSE 'delivered' END
		            ELSE 'failed' END AS state,
		       CASE WHEN health = 'failing' THEN 503
		            ELSE (ARRAY[500, 503, 502, 404, 401, 429, 410, 302, 0, 0, 418])
		                 [1 + CASE WHEN code < 0.6 THEN place % 11
		                           ELSE floor(power(odd, 1.7) * 11)::integer END]
		            END AS bad,
		       CASE WHEN place % 5 = 2 THEN 202 WHEN place % 7 = 4 AND code < 0.1 THEN 204
		            ELSE 200 END AS good,
		       CASE WHEN pace < 0.01 THEN 5000000 + floor(pace * 2400000000)::bigint
		            WHEN place % 9 = 4 THEN 1800000 + floor(pace * 3000000)::bigint
		            ELSE 20000 + floor(pace * 400000)::bigint END AS took
		  FROM routed r
	), classed AS MATERIALIZED (
		SELECT s.*,
		       CASE WHEN bad >= 500 THEN 'http_5xx' WHEN bad >= 400 THEN 'http_4xx'
		            WHEN bad >= 300 THEN 'http_3xx' WHEN pace < 0.6 THEN 'timeout'
		            WHEN pace < 0.7 THEN 'dns' ELSE 'connect' END AS class,
		       CASE WHEN bad > 0 THEN 20000 + floor(pace * 90000)::bigint
		            WHEN pace < 0.6 THEN 30000000 ELSE 12000 END AS lost,
		       (ARRAY['0', '1 minute', '11 minutes']::interval[])[attempts] AS waited,
		       convert_to('{"application_id":"' ||
		                  CASE WHEN test THEN '00000000-0000-4000-8000-000000000000'
		                       ELSE application_uid::text END || '","status":"' || s.status ||
		                  '","timestamp":"' ||
		                  to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '"' ||
		                  coalesce(',"task_title":"' || t.title || '"', '') || '}', 'UTF8') AS body,
		       CASE WHEN task_uid IS NOT NULL THEN 'task/' || task_uid
		            WHEN event LIKE 'disbursement.%' THEN 'disbursement/' ||
		                 (SELECT merchant_disbursement_id FROM disbursements d
		                   WHERE d.application_uid = s.application_uid
		                     AND d.disbursement_number = (k - 2) / 5)
		            ELSE 'application/' || s.application_uid END AS subject
		  FROM staged s
		  LEFT JOIN (SELECT task_uid, title FROM tasks) t USING (task_uid)
	), recorded AS (
		INSERT INTO events (event_uid, occurred_at, kind, partner_uid, merchant_uid,
		                    application_uid, status, body, sequence, subject, reference)
		SELECT event_uid, at, event, partner_uid, CASE WHEN NOT test THEN merchant_uid END,
		       CASE WHEN NOT test THEN application_uid END, status, body,
		       CASE WHEN NOT test THEN k END, CASE WHEN NOT test THEN subject END,
		       CASE WHEN NOT test THEN reference END
		  FROM classed
	), published AS (
		INSERT INTO feed (position, event_uid, occurred_at, merchant_uid, application_uid, kind)
		SELECT position + row_number() OVER (ORDER BY ordinal), event_uid, at, merchant_uid,
		       application_uid, event
		  FROM classed CROSS JOIN feed_head
		 WHERE NOT test
	), moved AS (
		UPDATE feed_head
		   SET position = position + (SELECT count(*) FROM classed WHERE NOT test)
	), placed AS (
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
		                        event, application_uid, status, test, state, attempt_count,
		                        next_attempt_at, queued, last_http_status, last_error_class,
		                        last_duration_us, finished_at)
		SELECT delivery_uid, at, subscription_uid, event_uid, at, event,
		       CASE WHEN NOT test THEN application_uid END, status, test, state,
		       CASE WHEN state = 'retrying' THEN 1 ELSE attempts END,
		       CASE WHEN state = 'retrying' THEN $3::timestamptz + interval '10 years' END, false,
		       CASE WHEN state = 'delivered' THEN good WHEN bad > 0 THEN bad END,
		       CASE WHEN state <> 'delivered' THEN class END,
		       CASE WHEN state = 'delivered' THEN took ELSE lost END,
		       CASE WHEN state <> 'retrying'
		            THEN at + waited + interval '1 microsecond' *
		                 (CASE WHEN state = 'delivered' THEN took ELSE lost END) END
		  FROM classed
	)
	INSERT INTO attempts (delivery_uid, delivery_created_at, number, started_at,
	                      subscription_version, url, http_status, error_class, cause, error, address,
	                      dns_us, connect_us, tls_us, first_byte_us, duration_us,
	                      request_headers, response_headers, response_body)
	SELECT delivery_uid, at, number,
	       at + (ARRAY['0', '1 minute', '11 minutes']::interval[])[number], 1, url,
	       CASE WHEN good_one THEN good WHEN bad > 0 THEN bad END,
	       CASE WHEN NOT good_one THEN class END,
	       CASE WHEN NOT good_one THEN
	            (CASE class WHEN 'timeout' THEN 'answer_time' WHEN 'dns' THEN 'no_name'
	                       WHEN 'connect' THEN 'refused' ELSE 'status' END)
	       END,
	       CASE WHEN NOT good_one THEN
	            (CASE class WHEN 'timeout' THEN 'time ran out while waiting for the answer'
	                       WHEN 'dns' THEN 'the host name does not exist'
	                       WHEN 'connect' THEN 'the connection was refused'
	                        ELSE 'the endpoint answered ' ||
	                             (SELECT concat_ws(' ', code, reason)
	                                FROM (VALUES (500, 'Internal Server Error'), (502, 'Bad Gateway'),
	                                             (503, 'Service Unavailable'), (404, 'Not Found'),
	                                             (401, 'Unauthorized'), (429, 'Too Many Requests'),
	                                             (410, 'Gone'), (302, 'Found'),
	                                             (418, 'I''m a teapot')) AS r (code, reason)
	                               WHERE code = bad) END)
	       END,
	       CASE WHEN good_one OR class <> 'dns' THEN '203.0.113.10:443' END, 900,
	       CASE WHEN good_one OR class NOT IN ('dns', 'connect') THEN 5000 END,
	       CASE WHEN good_one OR class NOT IN ('dns', 'connect') THEN 8000 END,
	       CASE WHEN good_one THEN (took - 14000) * 9 / 10
	            WHEN bad > 0 THEN (lost - 14000) * 9 / 10 END,
	       CASE WHEN good_one THEN took ELSE lost END,
	       '[{"name": "content-type", "value": "application/json"}]',
	       CASE WHEN good_one OR bad > 0
	            THEN '[{"name": "content-type", "value": "application/json"}]'::jsonb ELSE '[]' END,
	       CASE WHEN good_one THEN '{"ok":true}'::bytea
	            WHEN bad >= 500 THEN '{"error":"temporarily unavailable"}'
	            WHEN bad >= 400 THEN '{"error":"not accepted"}' END
	  FROM (SELECT c.*, number, state = 'delivered' AND number = attempts AS good_one
	          FROM classed c
	         CROSS JOIN LATERAL generate_series(1, CASE WHEN state = 'retrying' THEN 1
	                                                    ELSE attempts END) AS number) made`

// lockFeed keeps a publisher from using the positions that a batch takes.
const lockFeed = `SELECT FROM feed_head FOR UPDATE`

// makeResends re-sends $1 deliveries that failed, some time after $2 and before $3. All of them
// arrive, so that the failed deliveries are made good.
//
//nolint:unqueryvet // the inner rows are picked from by name outside
const makeResends = `
	WITH failed AS MATERIALIZED (
		SELECT d.*, s.url, drawbridge_uid(d.created_at + interval '1 hour') AS new_uid
		  FROM deliveries d
		  JOIN subscriptions s USING (subscription_uid)
		 WHERE d.state = 'failed'
		   AND d.created_at BETWEEN $2 AND $3::timestamptz - interval '1 hour'
		   AND d.resend_of IS NULL
		   AND d.created_at <= $2::timestamptz + random() * ($3::timestamptz - $2::timestamptz)
		 ORDER BY d.created_at DESC, d.delivery_uid DESC
		 LIMIT $1
	), placed AS (
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
		                        event, application_uid, status, test, state, attempt_count, queued,
		                        last_http_status, last_duration_us, finished_at, resend_of,
		                        resent_by, resend_reason)
		SELECT new_uid, created_at + interval '1 hour', subscription_uid, event_uid, event_at, event,
		       application_uid, status, test, 'delivered', 1, false, 200, 40000,
		       created_at + interval '61 minutes', delivery_uid, 'sam@lender.example', 'partner asked'
		  FROM failed
	), settled AS (
		UPDATE deliveries d
		   SET made_good_by = f.new_uid
		  FROM failed f
		 WHERE d.delivery_uid = f.delivery_uid AND d.created_at = f.created_at
	)
	INSERT INTO attempts (delivery_uid, delivery_created_at, number, started_at,
	                      subscription_version, url, http_status, duration_us, request_headers,
	                      response_headers, response_body)
	SELECT new_uid, created_at + interval '1 hour', 1, created_at + interval '1 hour', 1, url,
	       200, 40000, '[]', '[]', '{"ok":true}'
	  FROM failed`
