package seed

// addressOf is the e-mail address of the borrower of an application a.
const addressOf = `lower(a.borrower_first_name || '.' || a.borrower_last_name) || '@mail.example'`

// unmark removes the seed's marks from visible names, references, codes and addresses. Rows made
// later belong to others. It first gives applications references like those of a merchant's own
// system, which the events then take over.
var unmark = []step{
	{"partners", `
		UPDATE partners SET name = split_part(name, ' (seed ', 1) WHERE name LIKE '%(seed %'`, nil},
	{"products", `
		UPDATE products
		   SET code = CASE code WHEN 'SEED-1' THEN 'ROOF-402' WHEN 'SEED-2' THEN 'SOLAR-402'
		                        ELSE 'HEAT-402' END
		 WHERE code LIKE 'SEED-%'`, nil},
	{"references", `
		UPDATE applications
		   SET external_reference = 'PRJ-' || 2600 + substring(external_reference, 6)::integer
		 WHERE external_reference LIKE 'SEED-%'`, nil},
	{"events", `
		UPDATE events e
		   SET reference = a.external_reference
		  FROM applications a
		 WHERE e.application_uid = a.application_uid
		   AND e.reference LIKE 'SEED-%'`, nil},
	{"e-mails", `
		UPDATE emails e
		   SET to_address = ` + addressOf + `,
		       source = replace(e.source, e.to_address, ` + addressOf + `)
		  FROM applications a
		 WHERE a.application_uid = e.application_uid
		   AND e.to_address LIKE '%@seed.example'`, nil},
	{"borrowers", `
		UPDATE applications a
		   SET borrower_email = ` + addressOf + `
		 WHERE borrower_email LIKE '%@seed.example'`, nil},
	{"draws", `
		UPDATE disbursements SET requested_by = 'partner' WHERE requested_by = 'seed'`, nil},
}
