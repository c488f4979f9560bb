package seed

const unmarkPartners = `
	UPDATE partners SET name = split_part(name, ' (seed ', 1) WHERE name LIKE '%(seed %'`

const unmarkProducts = `
	UPDATE products
	   SET code = CASE code WHEN 'SEED-1' THEN 'ROOF-402' WHEN 'SEED-2' THEN 'SOLAR-402'
	                        ELSE 'HEAT-402' END
	 WHERE code LIKE 'SEED-%'`

// unmarkReferences gives applications references as a merchant's own system has them.
const unmarkReferences = `
	UPDATE applications
	   SET external_reference = 'PRJ-' || 2600 + substring(external_reference, 6)::integer
	 WHERE external_reference LIKE 'SEED-%'`

const unmarkEvents = `
	UPDATE events e
	   SET reference = a.external_reference
	  FROM applications a
	 WHERE e.application_uid = a.application_uid
	   AND e.reference LIKE 'SEED-%'`

// addressOf is where the borrower of an application a reads mail.
const addressOf = `lower(a.borrower_first_name || '.' || a.borrower_last_name) || '@mail.example'`

const unmarkEmails = `
	UPDATE emails e
	   SET to_address = ` + addressOf + `,
	       source = replace(e.source, e.to_address, ` + addressOf + `)
	  FROM applications a
	 WHERE a.application_uid = e.application_uid
	   AND e.to_address LIKE '%@seed.example'`

const unmarkBorrowers = `
	UPDATE applications a
	   SET borrower_email = ` + addressOf + `
	 WHERE borrower_email LIKE '%@seed.example'`

const unmarkDraws = `
	UPDATE disbursements SET requested_by = 'partner' WHERE requested_by = 'seed'`
