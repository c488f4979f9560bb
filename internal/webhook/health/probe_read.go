package health

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
)

// probeRow is a row of the table.
type probeRow struct {
	Subscription uuid.UUID  `db:"subscription_uid"`
	NextAt       time.Time  `db:"next_at"`
	URL          string     `db:"url"`
	At           *time.Time `db:"probed_at"`
	Class        *string    `db:"error_class"`
	Error        string     `db:"error"`
	Address      string     `db:"address"`
	Status       *int       `db:"http_status"`
	Location     string     `db:"location"`
	Protocol     string     `db:"protocol"`
	TLSVersion   string     `db:"tls_version"`
	Issuer       string     `db:"certificate_issuer"`
	Expires      *time.Time `db:"certificate_expires"`
	DNS          *int64     `db:"dns_us"`
	Connect      *int64     `db:"connect_us"`
	TLS          *int64     `db:"tls_us"`
	FirstByte    *int64     `db:"first_byte_us"`
	Total        *int64     `db:"total_us"`
	Failures     int        `db:"failures"`
}

func (r probeRow) record() ProbeRecord {
	address, _ := netip.ParseAddrPort(r.Address) // the zero value without one
	return ProbeRecord{
		Probe: sender.Probe{
			URL: r.URL, Class: sender.ErrorClass(postgres.OrZero(r.Class)), Error: r.Error, Address: address,
			Status: postgres.OrZero(r.Status), Location: r.Location, Protocol: r.Protocol,
			TLSVersion: r.TLSVersion, Issuer: r.Issuer, Expires: postgres.OrZero(r.Expires),
			Timings: sender.Timings{
				DNS: postgres.Duration(r.DNS), Connect: postgres.Duration(r.Connect),
				TLS:       postgres.Duration(r.TLS),
				FirstByte: postgres.Duration(r.FirstByte), Total: postgres.Duration(r.Total),
			},
		},
		Subscription: r.Subscription, At: postgres.OrZero(r.At), NextAt: r.NextAt, Failures: r.Failures,
	}
}

// LastProbe returns the last probe of a subscription's endpoint and the latest
// changes of what was found, newest first. Before the first probe the record's
// At is zero.
func (s *Service) LastProbe(
	ctx context.Context, uid uuid.UUID,
) (ProbeRecord, []ProbeChange, error) {
	var row probeRow
	err := s.DB.GetContext(ctx, &row, `
		SELECT subscription_uid, next_at, url, probed_at, error_class, error, address,
		       http_status, location, protocol, tls_version, certificate_issuer,
		       certificate_expires, dns_us, connect_us, tls_us, first_byte_us, total_us, failures
		  FROM probes
		 WHERE subscription_uid = $1`, uid)
	if postgres.IsNoRows(err) {
		return ProbeRecord{Subscription: uid}, nil, nil
	}
	if err != nil {
		return ProbeRecord{}, nil, fmt.Errorf("loading the probe of subscription %s: %w", uid, err)
	}
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
	return row.record(), changes, nil
}
