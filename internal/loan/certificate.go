package loan

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"drawbridge/internal/document"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// StoreCertificate keeps a completion certificate ahead of the final draw. It
// does not replace the documents that the final draw itself must carry.
//
// Errors: NOT_FOUND, APPLICATION_NOT_APPROVED, INVALID_STATE without a loan,
// COMPLETION_DOCUMENTS_REQUIRED for an empty one.
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
	certificate, err := attach(ctx, tx, uid, input)
	if err != nil {
		return Certificate{}, err
	}
	return Certificate{UID: certificate.UUID, Files: input.Files, Metadata: input.Metadata}, nil
}

// documents tells whether any documentation came along.
func (i DrawInput) documents() lending.Documents {
	if len(i.Files) > 0 || !i.Metadata.IsZero() {
		return lending.DocumentsGiven
	}
	return lending.DocumentsAbsent
}

// attach writes the certificate that came with a request, if one did.
func attach(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, input DrawInput,
) (uuid.NullUUID, error) {
	if input.documents() == lending.DocumentsAbsent {
		return uuid.NullUUID{}, nil
	}
	certificate := postgres.NewUID(tx.Now)
	var metadata any
	if !input.Metadata.IsZero() {
		metadata = string(input.Metadata.JSON())
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO certificates (certificate_uid, application_uid, metadata, created_at)
		VALUES ($1, $2, $3, $4)`, certificate, uid, metadata, tx.Now)
	if err != nil {
		return uuid.NullUUID{}, fmt.Errorf("inserting a certificate of loan %s: %w", uid, err)
	}
	for i, file := range input.Files {
		if err := insertFile(ctx, tx, certificate, i+1, file); err != nil {
			return uuid.NullUUID{}, err
		}
	}
	return uuid.NullUUID{UUID: certificate, Valid: true}, nil
}

func insertFile(
	ctx context.Context, tx *postgres.Tx, certificate uuid.UUID, position int, file document.File,
) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO certificate_files (file_uid, certificate_uid, position, name, size,
		                               content_type, sha256, object_key)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		file.UID, certificate, position, file.Name, file.Size,
		file.ContentType, file.SHA256, file.Key)
	if err != nil {
		return fmt.Errorf("inserting file %d of certificate %s: %w", position, certificate, err)
	}
	return nil
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
