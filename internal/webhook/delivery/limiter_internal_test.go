package delivery

import (
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/internal/webhook/sender"
)

// fill takes slots of an endpoint until there are none left, and returns them.
func fill(l *endpoint) []*slot {
	var slots []*slot
	for p := l.take(); p != nil; p = l.take() {
		slots = append(slots, p)
	}
	return slots
}

// known returns an endpoint that answers in a millisecond.
func known(all *limiter, number byte) *endpoint {
	l := all.of([16]byte{number})
	l.take().leave(time.Millisecond, false)
	return l
}

// TestManyHangingEndpointsLeaveWorkers makes endpoints hang that were quick, are slow, or
// have never answered: however many hang, workers are left for the others.
func TestManyHangingEndpointsLeaveWorkers(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(*endpoint){
		"were quick before": func(l *endpoint) { l.take().leave(time.Millisecond, false) },
		"are slow":          func(l *endpoint) { l.take().leave(2*time.Second, false) },
		"timed out":         func(l *endpoint) { l.take().leave(30*time.Second, true) },
		"never answered":    func(*endpoint) {},
	}
	for name, prepare := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var all limiter
				var endpoints []*endpoint
				for number := range 200 {
					endpoints = append(endpoints, all.of([16]byte{1, byte(number)}))
					prepare(endpoints[number])
				}
				<-time.After(2 * slowAfter)
				well := known(&all, 2)
				var hanging []*slot
				for _, l := range endpoints {
					hanging = append(hanging, fill(l)...)
				}
				for range 4 {
					<-time.After(slowAfter / 2)
					well.take().leave(time.Millisecond, false)
				}
				slots := fill(well)
				if len(slots) < 4 {
					t.Errorf("an endpoint that is well has %d slots beside %d that hang, want 4",
						len(slots), len(hanging))
				}
				for _, p := range append(hanging, slots...) {
					p.leave(30*time.Second, true)
				}
				if all.inFlight != 0 || all.slow != 0 {
					t.Errorf("%d are in flight at the end, %d slow", all.inFlight, all.slow)
				}
			})
		})
	}
}

// TestTimeoutsTakeSlots makes an endpoint time out repeatedly, then answer again.
func TestTimeoutsTakeSlots(t *testing.T) {
	t.Parallel()
	var all limiter
	l := known(&all, 1)
	if got := len(fill(l)); got != perEndpoint {
		t.Fatalf("a quick endpoint has %d slots, want %d", got, perEndpoint)
	}
	l = known(new(limiter), 1)
	for range 10 {
		l.take().leave(30*time.Second, true)
	}
	slots := fill(l)
	if len(slots) != perEndpoint/8 {
		t.Fatalf("an endpoint that times out has %d slots, want %d", len(slots), perEndpoint/8)
	}
	for _, p := range slots {
		p.leave(time.Millisecond, false)
	}
	for range maxHalvings {
		l.take().leave(time.Millisecond, false)
	}
	if got := len(fill(l)); got != perEndpoint {
		t.Errorf("after it answered again it has %d slots, want %d", got, perEndpoint)
	}
}

// TestTooLateToBegin resumes an attempt when others may have taken its process for dead:
// nothing is sent, and the slot is free again.
func TestTooLateToBegin(t *testing.T) {
	t.Parallel()
	var all limiter
	var service Service // without a sender
	taken := known(&all, 1).take()
	asked := time.Now().Add(-beginLife - time.Second)
	attempt := service.send(t.Context(), taken, &madeAttempt{asked: asked}, sender.Request{},
		func() {})
	if attempt.Class != sender.ClassUnknown || attempt.Sent || all.inFlight != 0 {
		t.Errorf("class %q, sent %v, %d in flight", attempt.Class, attempt.Sent, all.inFlight)
	}
}
