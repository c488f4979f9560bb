package loan

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/document"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Quota bounds how many files may be stored, and their total size in bytes.
type Quota struct {
	Files int
	Bytes int64
}

// The default quotas for one loan, and for one client within a day in UTC.
var (
	defaultLoanQuota = Quota{Files: 500, Bytes: 2 << 30}
	defaultDayQuota  = Quota{Files: 5000, Bytes: 20 << 30}
)

// uploadsKept is the number of days for which a client's upload counts are kept.
const uploadsKept = 7

// checkQuota refuses a certificate's files if they exceed a quota, and counts them for the
// client's day. A certificate without files, of metadata alone, counts as one file.
//
// Errors: PAYLOAD_TOO_LARGE for the loan's quota, RATE_LIMITED for the day's.
func (s *Service) checkQuota(
	ctx context.Context, tx *postgres.Tx, caller Caller, uid uuid.UUID, files []document.File,
) error {
	added := Quota{Files: max(len(files), 1)}
	for _, file := range files {
		added.Bytes += file.Size
	}
	var stored Quota
	err := tx.QueryRowxContext(ctx, `
		SELECT count(*), coalesce(sum(f.size), 0)
		  FROM certificates c
		  LEFT JOIN certificate_files f USING (certificate_uid)
		 WHERE c.application_uid = $1`, uid).Scan(&stored.Files, &stored.Bytes)
	if err != nil {
		return fmt.Errorf("counting the files of loan %s: %w", uid, err)
	}
	if bound := cmp.Or(s.LoanQuota, defaultLoanQuota); stored.add(added).exceeds(bound) {
		return lending.NewError(lending.CodePayloadTooLarge,
			"the loan has %d files of %d MiB in total; with the files of this request it would exceed "+
				"its limit of %d files or %d MiB", stored.Files, stored.Bytes>>20, bound.Files, bound.Bytes>>20)
	}
	day := tx.Now.UTC().Truncate(24 * time.Hour)
	err = tx.QueryRowxContext(ctx, `
		WITH past AS (
			DELETE FROM client_uploads
			 WHERE client_id = $1
			   AND day < $5
		)
		INSERT INTO client_uploads AS u (client_id, day, files, bytes)
		VALUES ($1, $2, $3, $4)
		ON CONFLICT (client_id, day) DO UPDATE
		   SET files = u.files + excluded.files,
		       bytes = u.bytes + excluded.bytes
		RETURNING files, bytes`, caller.Name, day, added.Files, added.Bytes,
		day.AddDate(0, 0, -uploadsKept)).Scan(&stored.Files, &stored.Bytes)
	if err != nil {
		return fmt.Errorf("counting the uploads of %s: %w", caller.Name, err)
	}
	if bound := cmp.Or(s.DayQuota, defaultDayQuota); stored.exceeds(bound) {
		refusal := lending.NewError(lending.CodeRateLimited,
			"this request exceeds the client's limit of %d files or %d MiB a day; retry after 00:00 UTC",
			bound.Files, bound.Bytes>>20)
		refusal.RetryAfter, refusal.Quota = day.AddDate(0, 0, 1).Sub(tx.Now), bound.Files
		return refusal
	}
	return nil
}

func (q Quota) add(more Quota) Quota {
	return Quota{Files: q.Files + more.Files, Bytes: q.Bytes + more.Bytes}
}

func (q Quota) exceeds(bound Quota) bool { return q.Files > bound.Files || q.Bytes > bound.Bytes }
