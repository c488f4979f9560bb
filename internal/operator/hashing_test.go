package operator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"

	"drawbridge/internal/lending"
)

var light = argon2id.Params{
	Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32,
}

// A caller waits for capacity only for a while, and only if not too many are waiting.
func TestHashingIsBounded(t *testing.T) {
	t.Parallel()
	h := NewHasher(light)
	heavier := light
	heavier.Memory *= 2
	heavy, err := argon2id.CreateHash("a phrase", &heavier)
	if err != nil {
		t.Fatal(err)
	}
	busy := func(what string, err error) {
		t.Helper()
		if lending.ErrorCode(err) != lending.CodeUnavailable {
			t.Errorf("%s: %v", what, err)
		}
	}
	check := func(hash string) error {
		_, _, err := h.check(t.Context(), "a phrase", hash)
		return err
	}
	h.slots <- struct{}{} // one of two slots is taken
	if err := check(""); err != nil {
		t.Errorf("beside one other: %v", err)
	}
	h.timeout = time.Millisecond
	busy("a hash that needs all the room, beside another", check(heavy))
	h.slots <- struct{}{}
	busy("no room", check(""))
	gone, leave := context.WithCancelCause(t.Context())
	leave(errGone)
	if _, err := h.hash(gone, "a phrase"); !errors.Is(err, errGone) {
		t.Errorf("who has gone away: %v", err)
	}
	h.timeout = time.Minute
	for range hashQueue {
		h.queue <- struct{}{}
	}
	busy("a full queue", check(""))
	for range hashQueue {
		<-h.queue
	}
	<-h.slots
	<-h.slots
	matches, renewed, err := h.check(t.Context(), "a phrase", heavy)
	if err != nil || !matches || renewed == "" {
		t.Errorf("with room: %v %q %v", matches, renewed, err)
	}
	if len(h.slots)+len(h.queue)+len(h.all) != 0 {
		t.Error("places are kept")
	}
}

var errGone = errors.New("gone")
