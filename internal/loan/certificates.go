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

// StoredCertificate is a completion certificate as users look it up.
type StoredCertificate struct {
	UID       uuid.UUID `db:"certificate_uid"`
	CreatedAt time.Time `db:"created_at"`
	// DisbursementID is the draw that it came with, 0 if it was stored ahead of one;
	// DisbursementNumber is that draw's number within the loan.
	DisbursementID     int64 `db:"merchant_disbursement_id"`
	DisbursementNumber int   `db:"disbursement_number"`
	// Metadata is a JSON object, nil for none.
	Metadata []byte
	// Files are in the order of the request.
	Files []document.File
}

// Certificates returns the completion certificates of a loan, newest first.
func (s *Service) Certificates(ctx context.Context, uid uuid.UUID) ([]StoredCertificate, error) {
	certificates, err := certificatesOf(ctx, s.DB, []uuid.UUID{uid})
	return certificates[uid], err
}

// certificatesOf returns the completion certificates of each of the loans, newest first. The
// query repeats the metadata, which may be large, only in the row of the first file.
func certificatesOf(
	ctx context.Context, db postgres.Querier, uids []uuid.UUID,
) (map[uuid.UUID][]StoredCertificate, error) {
	among, wanted := postgres.Among(uids)
	var rows []struct {
		StoredCertificate
		document.File
		Loan uuid.UUID `db:"application_uid"`
	}
	err := db.SelectContext(ctx, &rows, `
		SELECT c.application_uid,
		       c.certificate_uid,
		       c.created_at,
		       CASE WHEN coalesce(f.position, 1) = 1 THEN c.metadata END AS metadata,
		       coalesce(d.merchant_disbursement_id, 0) AS merchant_disbursement_id,
		       coalesce(d.disbursement_number, 0) AS disbursement_number,
		       coalesce(f.file_uid, '00000000-0000-0000-0000-000000000000') AS file_uid,
		       coalesce(f.name, '') AS name,
		       coalesce(f.size, 0) AS size,
		       coalesce(f.content_type, '') AS content_type,
		       coalesce(f.sha256, '') AS sha256,
		       coalesce(f.object_key, '') AS object_key
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
		if len(own) == 0 || own[len(own)-1].UID != row.StoredCertificate.UID {
			own = append(own, row.StoredCertificate)
		}
		if row.File.UID != uuid.Nil {
			last := &own[len(own)-1]
			last.Files = append(last.Files, row.File)
		}
		certificates[row.Loan] = own
	}
	return certificates, nil
}

// File looks up a file of one of the loan's certificates. Error: NOT_FOUND, also for a file of
// another loan.
func (s *Service) File(ctx context.Context, uid, fileUID uuid.UUID) (document.File, error) {
	file, owner, err := s.AnyFile(ctx, fileUID)
	if err == nil && owner != uid {
		return document.File{}, errNoFile(fileUID)
	}
	return file, err
}

// AnyFile looks up a file of any certificate and returns it with the uid of its loan. Error:
// NOT_FOUND.
func (s *Service) AnyFile(
	ctx context.Context, fileUID uuid.UUID,
) (document.File, uuid.UUID, error) {
	var row struct {
		document.File
		Loan uuid.UUID `db:"application_uid"`
	}
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
	return row.File, row.Loan, postgres.RowError(err, errNoFile(fileUID),
		"looking up file %s", fileUID)
}

func errNoFile(uid uuid.UUID) error {
	return lending.NewError(lending.CodeNotFound, "no file has the id %s", uid)
}
