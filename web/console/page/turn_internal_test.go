package page

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/waittest"
)

// TestTurnsOfAUser asks for more pages, and parts of live ones, than are worked at once: the rest
// of them waits, and others' do not.
func TestTurnsOfAUser(t *testing.T) {
	t.Parallel()
	s := new(Site)
	request := func(ctx context.Context, user uuid.UUID, path string) echo.Context {
		asked := echo.New().NewContext(
			httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil), httptest.NewRecorder())
		asked.Set(userKey, operator.User{UID: user})
		return asked
	}
	errDone := errors.New("done")
	var worked atomic.Int32
	goOn := make(chan struct{})
	work := func() error {
		worked.Add(1)
		<-goOn
		return errDone
	}
	page := s.inTurn(func(echo.Context) error { return work() })
	live := s.inTurn(func(ctx echo.Context) error {
		return s.Stream(ctx, func(context.Context) ([]byte, error) { return nil, work() })
	})
	busy := uuid.New()
	var asked sync.WaitGroup
	for range atOnce {
		for path, handler := range map[string]echo.HandlerFunc{"/": page, "/live": live} {
			asked.Go(func() {
				if err := handler(request(t.Context(), busy, path)); !errors.Is(err, errDone) {
					t.Errorf("%s is answered %v", path, err)
				}
			})
		}
	}
	waittest.Until(t, "as many are worked as may be", func() bool { return worked.Load() == atOnce })
	impatient, leave := context.WithCancelCause(t.Context())
	leave(postgres.ErrOutOfTime)
	for path, handler := range map[string]echo.HandlerFunc{"/": page, "/live": live} {
		err := handler(request(impatient, busy, path))
		if lending.ErrorCode(err) != lending.CodeUnavailable {
			t.Errorf("%s whose turn does not come is answered %v", path, err)
		}
	}
	asked.Go(func() { _ = page(request(t.Context(), uuid.New(), "/")) })
	waittest.Until(t, "another user's is worked", func() bool { return worked.Load() == atOnce+1 })
	close(goOn)
	asked.Wait()
	if got := worked.Load(); got != 2*atOnce+1 {
		t.Errorf("%d were worked", got)
	}
}
