package seed

// makeLife makes the events of each application, in order, until $2; the newest applications
// come first until there are $1 events. With $3 all but one in eight become a loan, else one in
// eight: large data has few loans compared with what waits and is declined. Some have just been
// received. $4 is the length of a life, 1 for about a week. A loan has up to three draws and,
// the longer it lives, more tasks; many close. A sequence number is the k-th step of its
// application's life, so that status, loan, draws and events agree. One in some hundred events
// is a test, which is the last of its application and is not one of its steps.
//
//nolint:unqueryvet // the inner rows are picked from by name outside
const makeLife = `
	WITH alive AS (
		SELECT a.application_uid, a.merchant_uid, a.partner_uid, a.created_at,
		       a.external_reference, n, n % 8 = 1 OR $3 AND n % 8 > 0 AS lent,
		       CASE WHEN n % 32 = 0 THEN 0
		            WHEN n % 80 = 1 THEN 7
		            WHEN n % 80 = 41 AND NOT $3 THEN 8
		            WHEN n % 8 = 1
		            THEN (ARRAY[11, 11, 16, 11, 11, 19, 11, 9])[1 + n / 8 % 8] + closing::integer
		            WHEN $3 THEN (ARRAY[3, 0, 11, 16, 20, 24, 28, 30])[1 + n % 8]
		            ELSE (ARRAY[3, 0, 25, 21, 23, 17, 23, 25])[1 + n % 8] END AS steps, closing
		  FROM applications a
		  JOIN partners p USING (partner_uid)
		 CROSS JOIN LATERAL (SELECT substring(a.external_reference, 6)::integer AS n) numbered
		 CROSS JOIN LATERAL (SELECT n % 8 = 1 AND n / 8 % 3 <> 1 AND n % 40 <> 1 AS closing) ends
		 WHERE p.name LIKE '%(seed %'
		   AND a.external_reference LIKE 'SEED-%'
		   AND a.last_sequence = 0
	), steps AS MATERIALIZED (
		SELECT a.*, k, random() < 0.03 AS may_test,
		       a.created_at + sum(interval '1 hour' * $4::float8 * (0.6 + 0.8 * random()) * coalesce(
		           (ARRAY[0.1, 0.5, 2, 4, 1, 6, 10, 3, 16, 3, 6, 20, 3, 16, 5, 2, 20, 3, 16, 24])[k], 12))
		           OVER (PARTITION BY a.application_uid ORDER BY k) AS at
		  FROM alive a
		 CROSS JOIN LATERAL generate_series(1, steps) AS k
	), kept AS (
		SELECT s.*, k = max(k) OVER (PARTITION BY application_uid) AND k > 1 AND may_test AS test
		  FROM (SELECT p.*, row_number() OVER (ORDER BY created_at DESC, application_uid, k) AS place
		          FROM steps p
		         WHERE at < $2) s
		 WHERE place <= $1::bigint
	), recorded AS (
		SELECT t.*,
		       CASE WHEN k <= 3 OR closing AND k = steps THEN 'application.status.update'
		            WHEN NOT lent AND k < steps THEN
		                 CASE k % 4 WHEN 0 THEN 'task.created' WHEN 1 THEN 'task.updated'
		                            ELSE 'application.status.update' END
		            WHEN k IN (4, 20) OR NOT lent THEN 'application.status.update'
		            WHEN k IN (7, 8, 12, 13, 17, 18) THEN 'disbursement.funding.status-changed'
		            WHEN k IN (9, 14, 19) THEN 'disbursement.funding.settled'
		            WHEN k = 5 THEN 'document.sent'
		            WHEN k = 6 THEN 'document.signed'
		            WHEN k = 15 THEN 'application.offer.update'
		            WHEN k = 16 THEN 'application.amount.update'
		            WHEN k IN (11, 22, 24, 26, 28, 30) THEN 'task.updated'
		            ELSE 'task.created' END AS event
		  FROM kept t
	)
	INSERT INTO seed_events (ordinal, at, event, status, application_uid, merchant_uid, partner_uid,
	                         reference, n, k, test, task_uid)
	SELECT row_number() OVER (ORDER BY at, application_uid, k), at, event,
	       CASE event
	            WHEN 'document.sent' THEN 'DOCUMENT_SENT'
	            WHEN 'document.signed' THEN 'DOCUMENT_SIGNED'
	            WHEN 'task.created' THEN 'Pending'
	            WHEN 'task.updated' THEN 'Completed'
	            WHEN 'application.offer.update' THEN 'Terms Updated'
	            WHEN 'application.amount.update' THEN 'Loan Amount Updated'
	            WHEN 'disbursement.funding.settled' THEN 'FUNDING_SETTLED'
	            WHEN 'disbursement.funding.status-changed'
	            THEN CASE WHEN k % 5 = 2 THEN 'FUNDING_REQUESTED' ELSE 'FUNDING_PROCESSING' END
	            ELSE CASE WHEN NOT lent AND k = steps
	                      THEN CASE WHEN n % 2 = 0 THEN 'Declined' ELSE 'Closed' END
	                      WHEN k = 1 THEN 'Hard Pull Authorization'
	                      WHEN lent AND k = 4 THEN 'Approved' WHEN lent AND k > 4 THEN 'Closed'
	                      WHEN k % 4 = 2 THEN 'Hard Pull' ELSE 'Pend Clearance' END END,
	       application_uid, merchant_uid, partner_uid, external_reference, n, k, test,
	       CASE event WHEN 'task.created' THEN md5(application_uid || '/' || k)::uuid
	                  WHEN 'task.updated' THEN md5(application_uid || '/' || k - 1)::uuid END
	  FROM recorded`

// indexLife serves the batches and the later statements.
const indexLife = `
	CREATE UNIQUE INDEX ON seed_events (ordinal);
	ANALYZE seed_events`

// makeTasks makes the tasks that the events report.
const makeTasks = `
	INSERT INTO tasks (task_uid, application_uid, title, status, created_at, updated_at)
	SELECT task_uid, application_uid,
	       (ARRAY['Photo of the roof', 'Proof of income', 'Signed permit',
	              'Certificate of insurance'])[1 + (n + min(k)) % 4],
	       CASE WHEN count(*) = 2 THEN 'Completed' ELSE 'Pending' END, min(at), max(at)
	  FROM seed_events
	 WHERE task_uid IS NOT NULL
	   AND NOT test
	 GROUP BY task_uid, application_uid, n`

// moveApplications sets each application to the state that its last event reported.
const moveApplications = `
	UPDATE applications a
	   SET status = m.status, last_sequence = m.last, decided_at = m.decided, last_event_at = m.at,
	       updated_at = m.at, document_status = m.documents,
	       offer_selected = l.product_uid IS NOT NULL,
	       selected_product_uid = l.product_uid,
	       communications = CASE WHEN l.product_uid IS NULL THEN a.communications ELSE 'enabled' END
	  FROM (SELECT application_uid, max(k) AS last, min(at) AS decided, max(at) AS at,
	               (array_agg(status ORDER BY k DESC)
	                FILTER (WHERE event = 'application.status.update'))[1] AS status,
	               (array_agg(status ORDER BY k DESC)
	                FILTER (WHERE event LIKE 'document.%'))[1] AS documents
	          FROM seed_events
	         WHERE NOT test
	         GROUP BY application_uid) m
	  LEFT JOIN loans l USING (application_uid)
	 WHERE a.application_uid = m.application_uid`

// makeLoans opens a loan for every application that was approved, and makes the draws that its
// events report. The money of some was returned; of those that stop at their first draw most
// were cancelled, and one in two of the others is overdue.
const makeLoans = `
	WITH opened AS MATERIALIZED (
		SELECT e.application_uid, e.n, e.at, a.requested_amount AS amount,
		       round(a.requested_amount * 0.4, 2) AS share, p.product_uid, p.term, p.interest_rate,
		       p.merchant_fee_percentage AS fee
		  FROM seed_events e
		  JOIN applications a USING (application_uid)
		  JOIN products p ON p.code = 'SEED-' || CASE WHEN n % 97 = 0 THEN 3 ELSE 1 + n % 2 END
		 WHERE e.k = 4
		   AND e.status = 'Approved'
		   AND NOT e.test
	), steps AS (
		SELECT application_uid, (k - 2) / 5 AS number, min(at) FILTER (WHERE k % 5 = 2) AS requested,
		       min(at) FILTER (WHERE k % 5 = 3) AS processed, min(at) FILTER (WHERE k % 5 = 4) AS settled
		  FROM seed_events
		 WHERE event LIKE 'disbursement.%'
		   AND NOT test
		 GROUP BY application_uid, number
	), draws AS MATERIALIZED (
		SELECT o.application_uid, number, requested, processed, settled,
		       CASE WHEN number = 3 THEN amount - 2 * share ELSE share END AS gross, fee,
		       CASE WHEN settled + interval '20 hours' < $1 AND n % 24 = 9 AND number = 1 THEN 'RETURNED'
		            WHEN settled IS NOT NULL THEN 'FUNDING_SETTLED'
		            WHEN processed IS NOT NULL THEN 'FUNDING_PROCESSING'
		            WHEN requested + interval '5 hours' < $1 AND n % 160 = 1 THEN 'CANCELLED'
		            ELSE 'FUNDING_REQUESTED' END AS status
		  FROM opened o
		  JOIN steps USING (application_uid)
	), offered AS (
		INSERT INTO offers (application_uid, product_uid, term, interest_rate,
		                    borrower_max_approved_amount, project_max_approved_amount, max_amount,
		                    approved_amount, merchant_fee_percentage)
		SELECT application_uid, product_uid, term, interest_rate, amount, amount, amount, amount, fee
		  FROM opened
		    ON CONFLICT DO NOTHING
	), lent AS (
		INSERT INTO loans (application_uid, product_uid, original_amount, loan_amount,
		                   drawn_amount, opened_at, updated_at)
		SELECT application_uid, product_uid, amount, amount,
		       coalesce((SELECT sum(gross) FROM draws d
		                  WHERE d.application_uid = o.application_uid
		                    AND d.status NOT IN ('CANCELLED', 'RETURNED')), 0), at, at
		  FROM opened o
	), staged AS (
		INSERT INTO loan_stages (application_uid, stage, percentage, scheduled_amount)
		SELECT application_uid, stage, (ARRAY[40, 40, 20])[stage],
		       CASE WHEN stage = 3 THEN amount - 2 * share ELSE share END
		  FROM opened CROSS JOIN generate_series(1, 3) AS stage
	)
	INSERT INTO disbursements (application_uid, disbursement_number, stage, kind, status,
	                           gross_amount, fee_amount, net_amount, fee_percentage,
	                           requested_by, requested_at, processing_at, settled_at,
	                           cancelled_at, returned_at)
	SELECT application_uid, number, number, CASE WHEN number = 3 THEN 'final' ELSE 'regular' END,
	       status, gross, round(gross * fee / 100, 2), gross - round(gross * fee / 100, 2), fee,
	       'seed', requested, processed, settled,
	       CASE WHEN status = 'CANCELLED' THEN requested + interval '5 hours' END,
	       CASE WHEN status = 'RETURNED' THEN settled + interval '20 hours' END
	  FROM draws
	 ORDER BY requested`
