package fleet

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres/pgtest"
)

func TestSteadyPulse(t *testing.T) {
	t.Parallel()
	start := time.Now()
	var p pulse
	for i, beat := range []struct {
		after time.Duration
		good  bool
		want  bool
	}{
		{0, true, false},
		{beatEvery, true, false},
		{beatEvery, true, true},
		{beatEvery, true, true},
		{beatEvery, false, false},
		{beatEvery, true, false},
		{beatEvery, true, true},
		{time.Hour, true, false},
		{beatEvery, true, false},
		{beatEvery, true, true},
		{-time.Hour, true, false},
		{beatEvery, true, false},
		{beatEvery, true, true},
	} {
		start = start.Add(beat.after)
		if got := p.steady(start, beat.good); got != beat.want {
			t.Errorf("beat %d: steady is %t", i, got)
		}
	}
}

// TestRescue runs jobs in processes that beat, do not any more, and never did.
func TestRescue(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		queue string
		// process tells how long ago it beat, a negative time that it is unknown.
		process, began time.Duration
		unsteady       bool
		metadata       string
		spent          bool
		want           string
	}{
		{name: "mail, living", queue: "email", process: time.Second, began: time.Hour, want: "running"},
		{
			name: "mail, dead", queue: "email", process: 2 * time.Minute, began: 3 * time.Minute,
			want: "available",
		},
		{
			name: "mail, dead or not", queue: "email", process: 2 * time.Minute, unsteady: true,
			want: "running",
		},
		{
			name: "mail, dead, cancelled", queue: "email", process: 2 * time.Minute,
			metadata: `{"cancel_attempted_at": "2026-01-01T00:00:00Z"}`, want: "cancelled",
		},
		{
			name: "mail, dead, out of runs", queue: "email", process: 2 * time.Minute, spent: true,
			want: "running",
		},
		{name: "mail, unknown", queue: "email", process: -1, began: time.Minute, want: "running"},
		{
			name: "mail, unknown and old", queue: "email", process: -1, began: time.Hour,
			want: "available",
		},
		{
			name: "delivery, dead and young", queue: "webhook", process: 2 * time.Minute,
			began: time.Minute, want: "running",
		},
		{
			name: "delivery, dead and old", queue: "webhook", process: 2 * time.Minute,
			began: 66 * time.Second, want: "available",
		},
		{
			name: "delivery, living and old", queue: "webhook", process: time.Second, unsteady: true,
			began: 66 * time.Second, want: "available",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := &Service{DB: pgtest.New(t)}
			s.steady.Store(!test.unsteady)
			process, attempts := uuid.New(), 1
			if test.process >= 0 {
				s.exec(t, `INSERT INTO processes (process_uid, host, pid, roles, version, started_at,
				                                  last_beat_at, skew_us)
				           VALUES ($1, 'here', 1, '{worker}', 'v', now(),
				                   now() - make_interval(secs => $2), 0)`, process, test.process.Seconds())
			}
			if test.spent {
				attempts = 25
			}
			if test.metadata == "" {
				test.metadata = "{}"
			}
			s.exec(t, `INSERT INTO river_job (state, queue, kind, args, attempt, max_attempts, metadata,
			                                  attempted_by, attempted_at)
			           VALUES ('running', $1, 'any', '{}', $2, 25, $3, ARRAY['before', $4],
			                   now() - make_interval(secs => $5))`,
				test.queue, attempts, test.metadata, process.String(), test.began.Seconds())
			count, err := s.Rescue(t.Context(), "webhook", 65*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			var state string
			if err := s.DB.GetContext(t.Context(), &state, `SELECT state FROM river_job`); err != nil {
				t.Fatal(err)
			}
			if rescued := count == 1; state != test.want || rescued != (state != "running") {
				t.Errorf("%d were rescued, the job is %s, want %s", count, state, test.want)
			}
		})
	}
}

func (s *Service) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := s.DB.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}
