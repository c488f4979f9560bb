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

// Who finds no room waits for a while, and not behind too many.
func TestHashingIsBounded(t *testing.T) {
	t.Parallel()
	h := NewHasher(light)
	h.patience = time.Millisecond
	heavier := light
	heavier.Memory *= 2
	heavy, err := argon2id.CreateHash("a phrase", &heavier)
	if err != nil {
		t.Fatal(err)
	}
	h.slots <- struct{}{} // one of two is taken
	if matches, _, err := h.check(t.Context(), "a phrase", ""); err != nil || matches {
		t.Errorf("beside one other: %v, %v", matches, err)
	}
	if _, _, err := h.check(t.Context(), "a phrase", heavy); lending.ErrorCode(err) !=
		lending.CodeUnavailable {
		t.Errorf("a hash that needs all the room, beside another: %v", err)
	}
	h.slots <- struct{}{}
	for name, want := range map[string]error{
		"no room":   context.DeadlineExceeded,
		"no queue":  nil,
		"gone away": errors.New("gone"),
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		switch name {
		case "no queue":
			for range hashQueue {
				h.queue <- struct{}{}
			}
		case "gone away":
			cancel(want)
		}
		_, err := h.hash(ctx, "a phrase")
		cancel(nil)
		for range len(h.queue) {
			<-h.queue
		}
		if name == "gone away" && !errors.Is(err, want) ||
			name != "gone away" && lending.ErrorCode(err) != lending.CodeUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	<-h.slots
	<-h.slots
	if matches, renewed, err := h.check(t.Context(), "a phrase", heavy); err != nil || !matches ||
		renewed == "" {
		t.Errorf("with room: %v %q %v", matches, renewed, err)
	}
	if len(h.slots)+len(h.queue)+len(h.all) != 0 {
		t.Error("places are kept")
	}
}
