package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/lib/pq"
)

// HourCount counts the deliveries that were created in one hour.
type HourCount struct {
	Hour  time.Time     `db:"hour"`
	State DeliveryState `db:"state"`
	Count int           `db:"count"`
}

// Statistics sum up the deliveries since a time, test events left out.
type Statistics struct {
	// Hours hold one entry for each hour and state that occurred.
	Hours []HourCount
	// Median and P95 are how long delivered ones took to be answered; zero
	// without any.
	Median, P95 time.Duration
	// OldestPending and NextRetry are nil when nothing waits.
	OldestPending, NextRetry *time.Time
}

// Count returns how many deliveries are in the state.
func (s Statistics) Count(state DeliveryState) int {
	total := 0
	for _, hour := range s.Hours {
		if hour.State == state {
			total += hour.Count
		}
	}
	return total
}

// Statistics sums up the deliveries that were created since a time.
func (s *Service) Statistics(ctx context.Context, since time.Time) (Statistics, error) {
	var statistics Statistics
	err := s.DB.SelectContext(ctx, &statistics.Hours, `
		SELECT date_trunc('hour', created_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' AS hour,
		       state,
		       count(*) AS count
		  FROM deliveries
		 WHERE created_at >= $1
		   AND NOT test
		 GROUP BY 1, 2
		 ORDER BY 1, 2`, since)
	if err != nil {
		return Statistics{}, fmt.Errorf("counting deliveries by hour: %w", err)
	}
	var took pq.Float64Array
	err = s.DB.QueryRowContext(ctx, `
		SELECT coalesce(percentile_cont(ARRAY[0.5, 0.95])
		                WITHIN GROUP (ORDER BY last_duration_us), '{}')
		  FROM deliveries
		 WHERE created_at >= $1
		   AND NOT test
		   AND state = 'delivered'`, since).Scan(&took)
	if err != nil {
		return Statistics{}, fmt.Errorf("measuring deliveries: %w", err)
	}
	if len(took) == 2 {
		statistics.Median = time.Duration(took[0]) * time.Microsecond
		statistics.P95 = time.Duration(took[1]) * time.Microsecond
	}
	err = s.DB.QueryRowContext(ctx, `
		SELECT min(created_at) FILTER (WHERE state = 'pending'),
		       min(next_attempt_at) FILTER (WHERE state = 'retrying')
		  FROM deliveries
		 WHERE state IN ('pending', 'retrying')
		   AND NOT parked`).Scan(&statistics.OldestPending, &statistics.NextRetry)
	if err != nil {
		return Statistics{}, fmt.Errorf("looking at what waits: %w", err)
	}
	return statistics, nil
}
