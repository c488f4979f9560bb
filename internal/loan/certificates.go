package loan

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/document"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// StoredCertificate is a completion certificate as people look it up.
type StoredCertificate struct {
	UID       uuid.UUID
	CreatedAt time.Time
	// DisbursementID is the draw that it came with, 0 when it was stored ahead of
	// one; DisbursementNumber counts within the loan.
	DisbursementID     int64
	DisbursementNumber int
	// Metadata is a JSON object, nil for none.
	Metadata []byte
	// Files are in the order of the request.
	Files []document.File
}

// certificateRow is a certificate beside one of its files, if it has any.
type certificateRow struct {
	UID       uuid.UUID  `db:"certificate_uid"`
	CreatedAt time.Time  `db:"created_at"`
	Metadata  []byte     `db:"metadata"`
	ID        *int64     `db:"merchant_disbursement_id"`
	Number    *int       `db:"disbursement_number"`
	FileUID   *uuid.UUID `db:"file_uid"`
	Name      *string    `db:"name"`
	Size      *int64     `db:"size"`
	Type      *string    `db:"content_type"`
	SHA256    *string    `db:"sha256"`
	Key       *string    `db:"object_key"`
}

// Certificates returns the completion certificates of a loan, newest first.
func (s *Service) Certificates(ctx context.Context, uid uuid.UUID) ([]StoredCertificate, error) {
	var rows []certificateRow
	err := s.DB.SelectContext(ctx, &rows, `
		SELECT c.certificate_uid,
		       c.created_at,
		       c.metadata,
		       d.merchant_disbursement_id,
		       d.disbursement_number,
		       f.file_uid,
		       f.name,
		       f.size,
		       f.content_type,
		       f.sha256,
		       f.object_key
		  FROM certificates c
		  LEFT JOIN disbursements d ON d.application_uid = c.application_uid
		                           AND d.certificate_uid = c.certificate_uid
		  LEFT JOIN certificate_files f ON f.certificate_uid = c.certificate_uid
		 WHERE c.application_uid = $1
		 ORDER BY c.created_at DESC,
		          c.certificate_uid DESC,
		          f.position`, uid)
	if err != nil {
		return nil, fmt.Errorf("listing the certificates of loan %s: %w", uid, err)
	}
	var certificates []StoredCertificate
	for _, row := range rows {
		last := len(certificates) - 1
		if last < 0 || certificates[last].UID != row.UID {
			certificates = append(certificates, row.certificate())
			last++
		}
		if row.FileUID != nil {
			certificates[last].Files = append(certificates[last].Files, row.file())
		}
	}
	return certificates, nil
}

func (r certificateRow) certificate() StoredCertificate {
	certificate := StoredCertificate{UID: r.UID, CreatedAt: r.CreatedAt, Metadata: r.Metadata}
	if r.ID != nil {
		certificate.DisbursementID, certificate.DisbursementNumber = *r.ID, *r.Number
	}
	return certificate
}

func (r certificateRow) file() document.File {
	return document.File{
		UID: *r.FileUID, Name: *r.Name, Size: *r.Size, ContentType: *r.Type,
		SHA256: *r.SHA256, Key: *r.Key,
	}
}

// File looks a file of one of the loan's certificates up. Error: NOT_FOUND,
// also for a file of another loan.
func (s *Service) File(ctx context.Context, uid, fileUID uuid.UUID) (document.File, error) {
	var row certificateRow
	err := s.DB.GetContext(ctx, &row, `
		SELECT f.file_uid,
		       f.name,
		       f.size,
		       f.content_type,
		       f.sha256,
		       f.object_key
		  FROM certificate_files f
		  JOIN certificates c USING (certificate_uid)
		 WHERE f.file_uid = $2
		   AND c.application_uid = $1`, uid, fileUID)
	if postgres.IsNoRows(err) {
		return document.File{}, lending.NewError(lending.CodeNotFound,
			"loan %s has no file with the id %s", uid, fileUID)
	}
	if err != nil {
		return document.File{}, fmt.Errorf("looking up file %s: %w", fileUID, err)
	}
	return row.file(), nil
}
