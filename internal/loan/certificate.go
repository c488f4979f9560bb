package loan

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/document"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// StoreCertificate keeps a completion certificate ahead of the final draw. It
// does not replace the documents that the final draw itself must carry.
//
// Errors: NOT_FOUND, APPLICATION_NOT_APPROVED, INVALID_STATE without a loan,
// COMPLETION_DOCUMENTS_REQUIRED for an empty one, PAYLOAD_TOO_LARGE and RATE_LIMITED
// beyond the bounds on what is stored.
func (s *Service) StoreCertificate(
	ctx context.Context, tx *postgres.Tx, caller Caller, uid uuid.UUID, input DrawInput,
) (Certificate, error) {
	app, err := lock(ctx, tx, caller, uid)
	if err != nil {
		return Certificate{}, err
	}
	loan, err := find(ctx, tx, app)
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
	return Certificate{UID: certificate.UUID, Files: input.Files, Metadata: input.Metadata}, nil
}

// documents tells whether any documentation came along. Metadata that says nothing
// is none.
func (i DrawInput) documents() lending.Documents {
	if len(i.Files) > 0 || !i.Metadata.IsEmpty() {
		return lending.DocumentsGiven
	}
	return lending.DocumentsAbsent
}

// attach writes the certificate that came with a request, if one did. Errors: those
// of checkRoom.
func (s *Service) attach(
	ctx context.Context, tx *postgres.Tx, caller Caller, uid uuid.UUID, input DrawInput,
) (uuid.NullUUID, error) {
	if input.documents() == lending.DocumentsAbsent {
		return uuid.NullUUID{}, nil
	}
	if err := s.checkRoom(ctx, tx, caller, uid, input.Files); err != nil {
		return uuid.NullUUID{}, err
	}
	certificate := postgres.NewUID(tx.Now)
	var metadata any
	if !input.Metadata.IsZero() {
		metadata = string(input.Metadata.JSON())
	}
	files := columnsOfFiles(input.Files)
	_, err := tx.ExecContext(ctx, `
		WITH certificate AS (
			INSERT INTO certificates (certificate_uid, application_uid, metadata, created_at)
			VALUES ($1, $2, $3, $4)
		), application AS (
			UPDATE applications SET updated_at = $4 WHERE application_uid = $2
		)
		INSERT INTO certificate_files (certificate_uid, file_uid, name, size, content_type,
		                               sha256, object_key, position)
		SELECT $1, file.*
		  FROM unnest($5::uuid[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::text[])
		       WITH ORDINALITY AS file`,
		certificate, uid, metadata, tx.Now,
		files.uids, files.names, files.sizes, files.types, files.hashes, files.keys)
	if err != nil {
		return uuid.NullUUID{}, fmt.Errorf("inserting a certificate of loan %s: %w", uid, err)
	}
	return uuid.NullUUID{UUID: certificate, Valid: true}, nil
}

// fileColumns are files as array parameters, one entry per file.
type fileColumns struct {
	uids, names, types, hashes, keys pq.StringArray
	sizes                            pq.Int64Array
}

func columnsOfFiles(files []document.File) fileColumns {
	var columns fileColumns
	for _, file := range files {
		columns.uids = append(columns.uids, file.UID.String())
		columns.names = append(columns.names, file.Name)
		columns.sizes = append(columns.sizes, file.Size)
		columns.types = append(columns.types, file.ContentType)
		columns.hashes = append(columns.hashes, file.SHA256)
		columns.keys = append(columns.keys, file.Key)
	}
	return columns
}

// IsReferenced tells whether a stored object belongs to a certificate; objects
// that none names are what a crash left behind.
func (s *Service) IsReferenced(ctx context.Context, key string) (bool, error) {
	var found bool
	err := s.DB.GetContext(ctx, &found,
		`SELECT EXISTS (SELECT 1 FROM certificate_files WHERE object_key = $1)`, key)
	if err != nil {
		return false, fmt.Errorf("looking up object %s: %w", key, err)
	}
	return found, nil
}
