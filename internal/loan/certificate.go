package loan

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// StoreCertificate stores a completion certificate ahead of the final draw. It does not replace
// the documents that the final draw itself must carry.
//
// Errors: NOT_FOUND, APPLICATION_NOT_APPROVED, INVALID_STATE without a loan,
// COMPLETION_DOCUMENTS_REQUIRED for an empty certificate, PAYLOAD_TOO_LARGE and RATE_LIMITED if
// a quota on what is stored is exceeded.
func (s *Service) StoreCertificate(
	ctx context.Context, tx *postgres.Tx, caller Caller, uid uuid.UUID, input DrawInput,
) (Certificate, error) {
	app, loan, err := load(ctx, tx, caller, uid, locked)
	if err != nil {
		return Certificate{}, err
	}
	if err := lending.CheckCertificate(app.Status, loan.values(), input.documents()); err != nil {
		return Certificate{}, err
	}
	certificate, err := s.attach(ctx, tx, caller, uid, input)
	if err != nil {
		return Certificate{}, err
	}
	// No event follows that would set updated_at.
	_, err = tx.ExecContext(ctx, `
		UPDATE applications SET updated_at = `+postgres.Later(`$2`, `updated_at`)+`
		 WHERE application_uid = $1`, uid, tx.Now)
	if err != nil {
		return Certificate{}, fmt.Errorf("noting the change of application %s: %w", uid, err)
	}
	return Certificate{UID: certificate.UUID, Files: input.Files, Metadata: input.Metadata}, nil
}

// documents reports whether the request came with documentation. Empty metadata does not count.
func (i DrawInput) documents() lending.Documents {
	if len(i.Files) > 0 || !i.Metadata.IsEmpty() {
		return lending.DocumentsGiven
	}
	return lending.DocumentsAbsent
}

// attach writes the certificate that came with a request, if any. Errors: those of checkQuota.
func (s *Service) attach(
	ctx context.Context, tx *postgres.Tx, caller Caller, uid uuid.UUID, input DrawInput,
) (uuid.NullUUID, error) {
	if input.documents() == lending.DocumentsAbsent {
		return uuid.NullUUID{}, nil
	}
	if err := s.checkQuota(ctx, tx, caller, uid, input.Files); err != nil {
		return uuid.NullUUID{}, err
	}
	certificate := postgres.NewUID(tx.Now)
	var metadata any
	if !input.Metadata.IsZero() {
		metadata = string(input.Metadata.JSON())
	}
	var uids, names, types, hashes, keys pq.StringArray
	var sizes pq.Int64Array
	for _, file := range input.Files {
		uids = append(uids, file.UID.String())
		names, sizes = append(names, file.Name), append(sizes, file.Size)
		types, hashes = append(types, file.ContentType), append(hashes, file.SHA256)
		keys = append(keys, file.Key)
	}
	_, err := tx.ExecContext(ctx, `
		WITH certificate AS (
			INSERT INTO certificates (certificate_uid, application_uid, metadata, created_at)
			VALUES ($1, $2, $3, $4)
		)
		INSERT INTO certificate_files (certificate_uid, file_uid, name, size, content_type,
		                               sha256, object_key, position)
		SELECT $1, file.*
		  FROM unnest($5::uuid[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::text[])
		       WITH ORDINALITY AS file`,
		certificate, uid, metadata, tx.Now, uids, names, sizes, types, hashes, keys)
	if err != nil {
		return uuid.NullUUID{}, fmt.Errorf("inserting a certificate of loan %s: %w", uid, err)
	}
	return uuid.NullUUID{UUID: certificate, Valid: true}, nil
}

// IsReferenced reports whether a stored object belongs to a certificate; an object that belongs
// to none was left behind by a crash.
func (s *Service) IsReferenced(ctx context.Context, key string) (bool, error) {
	var found bool
	err := s.DB.GetContext(ctx, &found,
		`SELECT EXISTS (SELECT 1 FROM certificate_files WHERE object_key = $1)`, key)
	if err != nil {
		return false, fmt.Errorf("looking up object %s: %w", key, err)
	}
	return found, nil
}
