package operator

import (
	"testing"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres/pgtest"
)

// A sign-in that is refused for lack of capacity does not count as an attempt.
func TestNoRoomIsNoTry(t *testing.T) {
	t.Parallel()
	s := &Service{DB: pgtest.New(t), Passwords: NewHasher(light)}
	s.Passwords.timeout = time.Millisecond
	for range hashSlots {
		s.Passwords.slots <- struct{}{}
	}
	for range 2 * failuresPerAccount {
		_, err := s.SignIn(t.Context(), "ada@lender.example", "a phrase", Visitor{Address: "192.0.2.7"})
		if lending.ErrorCode(err) != lending.CodeUnavailable {
			t.Fatalf("without room: %v", err)
		}
	}
	var tries int
	if err := s.DB.Get(&tries, `SELECT count(*) FROM sign_in_failures`); err != nil || tries != 0 {
		t.Errorf("%d tries are counted, %v", tries, err)
	}
}
