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
	Loan      uuid.UUID  `db:"application_uid"`
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
	certificates, err := certificatesOf(ctx, s.DB, []uuid.UUID{uid})
	return certificates[uid], err
}

// certificatesOf returns the completion certificates of each of the loans, newest first.
func certificatesOf(
	ctx context.Context, db postgres.Querier, uids []uuid.UUID,
) (map[uuid.UUID][]StoredCertificate, error) {
	among, wanted := postgres.Among(uids)
	var rows []certificateRow
	err := db.SelectContext(ctx, &rows, `
		SELECT c.application_uid,
		       c.certificate_uid,
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
		 WHERE c.application_uid`+among+`
		 ORDER BY c.created_at DESC,
		          c.certificate_uid DESC,
		          f.position`, wanted)
	if err != nil {
		return nil, fmt.Errorf("listing the certificates of loans %s: %w", uids, err)
	}
	certificates := map[uuid.UUID][]StoredCertificate{}
	for _, row := range rows {
		own := certificates[row.Loan]
		if len(own) == 0 || own[len(own)-1].UID != row.UID {
			own = append(own, row.certificate())
		}
		if row.FileUID != nil {
			last := &own[len(own)-1]
			last.Files = append(last.Files, row.file())
		}
		certificates[row.Loan] = own
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
	file, owner, err := s.AnyFile(ctx, fileUID)
	if err == nil && owner != uid {
		return document.File{}, errNoFile(fileUID)
	}
	return file, err
}

// AnyFile looks a file of any certificate up, and returns the loan that it is of. Error:
// NOT_FOUND.
func (s *Service) AnyFile(
	ctx context.Context, fileUID uuid.UUID,
) (document.File, uuid.UUID, error) {
	var row certificateRow
	err := s.DB.GetContext(ctx, &row, `
		SELECT c.application_uid,
		       f.file_uid,
		       f.name,
		       f.size,
		       f.content_type,
		       f.sha256,
		       f.object_key
		  FROM certificate_files f
		  JOIN certificates c USING (certificate_uid)
		 WHERE f.file_uid = $1`, fileUID)
	if postgres.IsNoRows(err) {
		return document.File{}, uuid.Nil, errNoFile(fileUID)
	}
	if err != nil {
		return document.File{}, uuid.Nil, fmt.Errorf("looking up file %s: %w", fileUID, err)
	}
	return row.file(), row.Loan, nil
}

func errNoFile(uid uuid.UUID) error {
	return lending.NewError(lending.CodeNotFound, "no file has the id %s", uid)
}
