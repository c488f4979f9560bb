package search

import "strconv"

// Each lookup is a set of statements that use one index each. $1 is the text as typed, ? is the
// value to look up.

var limit = strconv.Itoa(perKind)

const applicationHit = `
	SELECT 'application' AS kind, a.application_uid::text AS id,
	       a.borrower_first_name || ' ' || a.borrower_last_name || ', ' || a.project_name AS title,
	       a.status || ' · ' || m.name || coalesce(' · ' || a.external_reference, '') ||
	       ' · ' || a.borrower_email AS detail, '' AS part
	  FROM applications a JOIN merchants m USING (merchant_uid)`

// subscriptionTitle is the name of the subscription s, if it has one, and its address.
const subscriptionTitle = `CASE WHEN s.name = '' THEN s.url ELSE s.name || ' (' || s.url || ')' END`

const subscriptionHit = `
	SELECT 'subscription', s.subscription_uid::text, ` + subscriptionTitle + `,
	       p.name || ' · ' || s.state, ''
	  FROM subscriptions s JOIN partners p USING (partner_uid)`

const merchantHit = `
	SELECT 'merchant', m.merchant_uid::text, m.name, p.name, ''
	  FROM merchants m JOIN partners p USING (partner_uid)`

const productHit = `
	SELECT 'product', product_uid::text, code || ', ' || name,
	       CASE WHEN active THEN 'on offer' ELSE 'not offered' END, ''
	  FROM products`

const emailHit = `
	SELECT 'email', email_uid::text, kind || ' e-mail to ' || to_address, state, ''
	  FROM emails`

const requestHit = `
	SELECT 'request', request_uid::text, method || ' ' || path,
	       status || ' · ' || request_id, ''
	  FROM api_requests`

const systemHit = `
	SELECT 'system', client_id, name,
	       'lender API' || CASE WHEN revoked_at IS NULL THEN '' ELSE ' · revoked' END, ''
	  FROM clients`

// byUID finds things by their identifier.
const byUID = applicationHit + ` WHERE a.application_uid = ?
	UNION ALL
	SELECT 'delivery', d.delivery_uid::text, d.event || ': ' || d.status,
	       CASE WHEN d.made_good_by IS NULL THEN d.state ELSE 'made good' END || ' · ' || p.name ||
	       ' · ' || ` + subscriptionTitle + `, ''
	  FROM deliveries d JOIN subscriptions s USING (subscription_uid)
	  JOIN partners p USING (partner_uid)
	 WHERE d.delivery_uid = ?
	UNION ALL
	SELECT 'event', e.event_uid::text, e.kind || ': ' || e.status, p.name, ''
	  FROM events e JOIN partners p USING (partner_uid) WHERE e.event_uid = ?
	UNION ALL` + emailHit + ` WHERE email_uid = ?
	UNION ALL` + subscriptionHit + ` WHERE s.subscription_uid = ?
	UNION ALL
	SELECT 'partner', partner_uid::text, name, '', '' FROM partners WHERE partner_uid = ?
	UNION ALL
	SELECT 'bulk', b.bulk_uid::text, 'Bulk re-send of ' || p.name,
	       b.state || ' · ' || b.created_by, ''
	  FROM bulk_resends b JOIN partners p USING (partner_uid) WHERE b.bulk_uid = ?
	UNION ALL
	SELECT 'certificate', application_uid::text, 'Completion certificate', '', certificate_uid::text
	  FROM certificates WHERE certificate_uid = ?
	UNION ALL
	SELECT 'certificate', c.application_uid::text, f.name, 'a file of a completion certificate',
	       c.certificate_uid::text
	  FROM certificate_files f JOIN certificates c USING (certificate_uid) WHERE f.file_uid = ?
	UNION ALL
	SELECT 'task', application_uid::text, title, status, task_uid::text
	  FROM tasks WHERE task_uid = ?
	UNION ALL
	SELECT 'alert', item_uid::text, detail,
	       CASE WHEN closed_at IS NULL THEN 'open' ELSE 'closed' END, ''
	  FROM attention_items WHERE item_uid = ?
	UNION ALL` + merchantHit + ` WHERE m.merchant_uid = ?
	UNION ALL` + productHit + ` WHERE product_uid = ?`

// byMoment finds the logged request with an identifier. The identifier contains its time, which
// selects the day's partition: it lies between ! and @.
const byMoment = requestHit + ` WHERE request_uid = ? AND at >= ! AND at < @`

// byNumber finds a disbursement by its number.
const byNumber = `
	SELECT 'disbursement' AS kind, application_uid::text AS id,
	       'Draw ' || merchant_disbursement_id || ' (' || kind || ')' AS title, status AS detail,
	       merchant_disbursement_id::text AS part
	  FROM disbursements WHERE merchant_disbursement_id = ?`

// byText finds things named by exactly the text. For mails to borrowers it finds the
// applications instead, on whose pages the mails are listed.
var byText = `
	(
	SELECT 'client' AS kind, c.client_id AS id, c.client_id AS title,
	       p.name || CASE WHEN c.revoked_at IS NULL THEN '' ELSE ' · revoked' END AS detail,
	       '' AS part
	  FROM clients c JOIN partners p USING (partner_uid) WHERE c.client_id = $1)
	UNION ALL
	(
	SELECT 'disbursement', application_uid::text,
	       'Draw ' || merchant_disbursement_id || ' (' || kind || ')',
	       status || ' · ' || $1::text, merchant_disbursement_id::text
	  FROM disbursements
	 WHERE merchant_disbursement_id IN (
	       SELECT merchant_disbursement_id FROM disbursement_changes WHERE reference = $1)
	 ORDER BY merchant_disbursement_id DESC LIMIT ` + limit + `)
	UNION ALL
	(` + systemHit + ` WHERE client_id = $1 AND partner_uid IS NULL)
	UNION ALL
	(` + emailHit + ` WHERE message_id = trim(BOTH '<>' FROM $1))
	UNION ALL
	(` + emailHit + `
	 WHERE lower(to_address) = lower($1)
	   AND NOT EXISTS (SELECT FROM applications WHERE lower(borrower_email) = lower($1))
	 ORDER BY created_at DESC, email_uid DESC LIMIT ` + limit + `)
	UNION ALL
	(` + requestHit + ` WHERE request_id = $1 ORDER BY at DESC LIMIT ` + limit + `)`

// byBeginning finds applications whose reference, e-mail address or borrower's name (the full
// name or the last name) begins with the text.
var byBeginning = `
	(` + applicationHit + `
	 WHERE a.application_uid IN (
	       (SELECT application_uid FROM applications
	         WHERE lower(external_reference) LIKE ? AND external_reference IS NOT NULL
	         ORDER BY lower(external_reference) USING ~<~ LIMIT ` + limit + `)
	       UNION
	       (SELECT application_uid FROM applications WHERE lower(borrower_email) LIKE ?
	         ORDER BY lower(borrower_email) USING ~<~ LIMIT ` + limit + `)
	       UNION
	       (SELECT application_uid FROM applications
	         WHERE lower(borrower_first_name || ' ' || borrower_last_name) LIKE ?
	         ORDER BY lower(borrower_first_name || ' ' || borrower_last_name) USING ~<~
	         LIMIT ` + limit + `)
	       UNION
	       (SELECT application_uid FROM applications WHERE lower(borrower_last_name) LIKE ?
	         ORDER BY lower(borrower_last_name) USING ~<~ LIMIT ` + limit + `))
	 ORDER BY a.created_at DESC LIMIT ` + limit + `)`

// byPlace finds subscriptions whose URL without the scheme, or a word of whose name, begins with
// the text (! at the start of the name, @ further on). There are few enough to check each.
var byPlace = `
	(` + subscriptionHit + `
	 WHERE lower(substring(s.url FROM '^[a-z]+://(.*)$')) LIKE ?
	    OR lower(s.name) LIKE ! OR lower(s.name) LIKE @
	 ORDER BY s.state = 'deleted', s.created_at DESC LIMIT ` + limit + `)`

// byName finds partners, merchants, products and systems with a word that begins with the text
// (? at the start, ! further on); products also by code and partners also by contact. There are
// few enough to check each.
var byName = `
	(
	SELECT 'partner', partner_uid::text, name, '', ''
	  FROM partners WHERE lower(name) LIKE ? OR lower(name) LIKE ! OR lower(contact) LIKE ?
	 ORDER BY name LIMIT ` + limit + `)
	UNION ALL
	(` + merchantHit + ` WHERE lower(m.name) LIKE ? OR lower(m.name) LIKE !
	 ORDER BY m.name LIMIT ` + limit + `)
	UNION ALL
	(` + systemHit + `
	 WHERE partner_uid IS NULL AND (lower(name) LIKE ? OR lower(name) LIKE !)
	 ORDER BY name LIMIT ` + limit + `)
	UNION ALL
	(` + productHit + ` WHERE lower(code) LIKE ? OR lower(name) LIKE ? OR lower(name) LIKE !
	 ORDER BY code LIMIT ` + limit + `)`
