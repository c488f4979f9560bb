package doctor

import (
	"context"
	"time"

	"drawbridge/internal/app"
	"drawbridge/internal/postgres"
)

const (
	// replicaTimeout is how long a replica may take to reach the primary's position.
	replicaTimeout  = 5 * time.Second
	replicaInterval = 100 * time.Millisecond
)

// examineReplica checks whether the replica, if there is one, follows the primary.
func examineReplica(ctx context.Context, s *app.Services) ([]Checkup, error) {
	most := s.DB.MostLag()
	if most == 0 {
		return nil, nil
	}
	limited, end := context.WithTimeout(ctx, min(most, replicaTimeout))
	defer end()
	state := s.DB.PollReplica(ctx)
	for !state.CaughtUp && state.Problem == "" && postgres.Pause(limited, replicaInterval) {
		state = s.DB.PollReplica(ctx)
	}
	found := Checkup{Name: "replica", Finding: OK, Detail: capital(state.String()) + "."}
	if !state.CaughtUp {
		found.Finding = Warning
		found.Remedy = "Pages and the feed are read from the primary meanwhile. Check " +
			"DRAWBRIDGE_DATABASE_READ_URL, and on the replica: " +
			psqlAt("DRAWBRIDGE_DATABASE_READ_URL",
				"SELECT status, latest_end_time FROM pg_stat_wal_receiver")
	}
	return []Checkup{found}, nil
}
