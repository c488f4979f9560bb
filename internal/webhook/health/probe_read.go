package health

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

// LastProbe returns the last probe of a subscription's endpoint and the latest changes in
// what the probes found, newest first. Before the first probe the record's At is zero.
func (s *Service) LastProbe(
	ctx context.Context, uid uuid.UUID,
) (ProbeRecord, []ProbeChange, error) {
	var row struct {
		ProbeRecord
		Found   *time.Time `db:"probed_at"`
		Dialled string     `db:"address"`
		Ends    *time.Time `db:"certificate_expires"`
	}
	err := s.DB.GetContext(ctx, &row, `
		SELECT subscription_uid, next_at, url, probed_at, coalesce(error_class, '') AS class, error,
		       address, coalesce(http_status, 0) AS status, location, protocol,
		       tls_version AS tlsversion, certificate_issuer AS issuer, certificate_expires, failures,
		       coalesce(dns_us, 0) * 1000 AS "timings.dns",
		       coalesce(connect_us, 0) * 1000 AS "timings.connect",
		       coalesce(tls_us, 0) * 1000 AS "timings.tls",
		       coalesce(first_byte_us, 0) * 1000 AS "timings.firstbyte",
		       coalesce(total_us, 0) * 1000 AS "timings.total"
		  FROM probes
		 WHERE subscription_uid = $1`, uid)
	if postgres.IsNoRows(err) {
		return ProbeRecord{Subscription: uid}, nil, nil
	}
	if err != nil {
		return ProbeRecord{}, nil, fmt.Errorf("loading the probe of subscription %s: %w", uid, err)
	}
	row.At, row.Expires = postgres.OrZero(row.Found), postgres.OrZero(row.Ends)
	row.Address, _ = netip.ParseAddrPort(row.Dialled) // the zero value if there is none
	var changes []ProbeChange
	err = s.DB.SelectContext(ctx, &changes, `
		SELECT at, finding
		  FROM probe_changes
		 WHERE subscription_uid = $1
		 ORDER BY at DESC
		 LIMIT $2`, uid, probeHistory)
	if err != nil {
		return ProbeRecord{}, nil, fmt.Errorf("listing the probes of subscription %s: %w", uid, err)
	}
	return row.ProbeRecord, changes, nil
}
