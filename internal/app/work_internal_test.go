package app

import (
	"context"
	"errors"
	"testing"

	"github.com/lib/pq"
)

// TestAStartOutlastsAFailOver: a database that lets nobody write for a moment does not end a
// process that has begun to serve, and what no time fixes does.
func TestAStartOutlastsAFailOver(t *testing.T) {
	t.Parallel()
	tries := 0
	err := patiently(t.Context(), func(context.Context) error {
		if tries++; tries == 1 {
			return &pq.Error{Code: "25006"} // read_only_sql_transaction
		}
		return nil
	})
	if err != nil || tries != 2 {
		t.Errorf("after %d tries it ended with %v", tries, err)
	}
	wrong := errors.New("the database is of another environment")
	err = patiently(t.Context(), func(context.Context) error { return wrong })
	if !errors.Is(err, wrong) {
		t.Errorf("it ended with %v, want %v", err, wrong)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	err = patiently(ended, func(context.Context) error { return &pq.Error{Code: "25006"} })
	if err != nil {
		t.Errorf("while the process stops it ended with %v", err)
	}
}
