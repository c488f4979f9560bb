package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/internal/lending"
)

// visits are the slots that a test holds at a limiter.
type visits struct {
	t       *testing.T
	limiter Limiter
	slots   map[string][]*Slot
}

// enter admits that many requests of a client.
func (v *visits) enter(client string, calls int) {
	v.t.Helper()
	for range calls {
		slot, err := v.limiter.Enter(v.t.Context(), client)
		if err != nil {
			v.t.Fatalf("a call of %s is refused: %v", client, err)
		}
		v.slots[client] = append(v.slots[client], slot)
	}
}

// wait puts a request in the line, and sends its client, or its error, when its wait has ended.
func (v *visits) wait(client string, ends chan<- string) {
	go func() {
		slot, err := v.limiter.Enter(v.t.Context(), client)
		if err != nil {
			ends <- "refused " + client
			return
		}
		ends <- client
		slot.Leave()
	}()
	synctest.Wait()
}

func (v *visits) leave(client string) {
	last := len(v.slots[client]) - 1
	v.slots[client][last].Leave()
	v.slots[client] = v.slots[client][:last]
	synctest.Wait()
}

// full returns a limiter with every slot taken by two clients.
func full(t *testing.T) *visits {
	v := &visits{t: t, slots: map[string][]*Slot{}}
	v.enter("large", slotsPerClient)
	v.enter("other", maxSlots-slotsPerClient)
	return v
}

// TestOneClientLeavesSlots: requests of one client that all wait do not hold up other clients.
func TestOneClientLeavesSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &visits{t: t, slots: map[string][]*Slot{}}
		v.enter("large", slotsPerClient)
		ends := make(chan string, 1)
		v.wait("large", ends)
		v.enter("small", 1)
		if waiting := v.limiter.Waiting(); waiting != 1 {
			t.Errorf("%d calls wait, want the large client's next one", waiting)
		}
		others := make(chan string, lineLength)
		for range lineLength - 1 {
			v.wait("large", others)
		}
		v.enter("late", 1) // despite a full line
		if refused := v.limiter.Refused(); refused != 0 {
			t.Errorf("%d calls are refused while there are slots", refused)
		}
		v.leave("large")
		if next := <-ends; next != "large" {
			t.Errorf("the free slot ends with %q", next)
		}
		for range lineLength - 1 {
			<-others
		}
	})
}

// TestSlotsGoRound: a free slot goes to the client that has the fewest, so one request of a small
// client does not wait for a hundred of a large one.
func TestSlotsGoRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := full(t)
		ends := make(chan string, lineLength)
		for range 100 {
			v.wait("large", ends)
		}
		v.wait("small", ends)
		v.leave("other")
		if next := <-ends; next != "small" {
			t.Errorf("the slot went to the %s client", next)
		}
		v.leave("large") // the first one to leave lets in the next, and so on
		for range 100 {
			if next := <-ends; next != "large" {
				t.Fatalf("a call ended with %q", next)
			}
		}
	})
}

// TestFullLine: when the line is full, requests are refused with a helpful error, first those of
// the client that has the most there.
func TestFullLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := full(t)
		ends := make(chan string, 2*lineLength)
		for range lineLength {
			v.wait("large", ends)
		}
		_, err := v.limiter.Enter(t.Context(), "large")
		refusal, coded := errors.AsType[*lending.Error](err)
		if !coded || refusal.Code != lending.CodeUnavailable || refusal.RetryAfter != time.Second {
			t.Errorf("a call beyond the line gets %v", err)
		}
		v.wait("small", ends)
		if end := <-ends; end != "refused large" {
			t.Errorf("a full line has %q leave for the small client", end)
		}
		if waiting, refused := v.limiter.Waiting(), v.limiter.Refused(); waiting != lineLength ||
			refused != 2 {
			t.Errorf("%d wait and %d were refused, want %d and 2", waiting, refused, lineLength)
		}
		v.leave("other")
		if end := <-ends; end != "small" {
			t.Errorf("the slot went to the %s client", end)
		}
		v.leave("large")
	})
}

// TestPatientCallsWaitBehindOthers: a thousand requests for a late answer take no room in the line
// of the others, and do not delay them.
func TestPatientCallsWaitBehindOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := full(t)
		ends := make(chan string, patientLine+1)
		listen := func(client string) {
			go func() {
				slot, err := v.limiter.EnterPatient(t.Context(), client)
				if err != nil {
					ends <- "refused listener of " + client
					return
				}
				ends <- "listener of " + client
				slot.Leave()
			}()
			synctest.Wait()
		}
		for range patientLine {
			listen("large")
		}
		if waiting, refused := v.limiter.Waiting(), v.limiter.Refused(); waiting != patientLine ||
			refused != 0 {
			t.Errorf("%d wait and %d were refused, want %d and 0", waiting, refused, patientLine)
		}
		if _, err := v.limiter.EnterPatient(t.Context(), "large"); err == nil {
			t.Error("one more of them gets in")
		}
		listen("small")
		if end := <-ends; end != "refused listener of large" {
			t.Errorf("a full line has %q leave for the small client", end)
		}
		urgent := make(chan string, lineLength)
		for range lineLength {
			v.wait("large", urgent)
		}
		v.leave("other")
		if end := <-ends; end != "listener of small" {
			t.Errorf("the slot of another client went to a %s", end)
		}
		v.leave("large")
		for range lineLength {
			if end := <-urgent; end != "large" {
				t.Fatalf("a call in line is %s", end)
			}
		}
		for range patientLine - 1 {
			if end := <-ends; end != "listener of large" {
				t.Fatalf("a call that asks for a late answer is a %s", end)
			}
		}
	})
}

// TestRefusedClientsAreForgotten: requests with made-up clients that are refused take up no memory.
func TestRefusedClientsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := full(t)
		ends := make(chan string, lineLength)
		for i := range lineLength {
			v.wait(fmt.Sprint("small ", i), ends)
		}
		for i := range 100 {
			if _, err := v.limiter.Enter(t.Context(), fmt.Sprint("late ", i)); err == nil {
				t.Error("a call gets into a full line of clients that have one each")
			}
		}
		if clients := len(v.limiter.clients); clients != lineLength+2 {
			t.Errorf("%d clients are known, want the %d that have calls", clients, lineLength+2)
		}
		v.leave("other")
		for range lineLength {
			<-ends
		}
	})
}

// TestLineGetsShorter: a line that never empties is no burst, and is shorter until it has emptied.
func TestLineGetsShorter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := full(t)
		ends := make(chan string, 2*lineLength)
		fill := func() int {
			for range lineLength + 1 {
				v.wait("small", ends)
			}
			return v.limiter.Waiting()
		}
		if waiting := fill(); waiting != lineLength {
			t.Errorf("%d calls wait in a burst, want %d", waiting, lineLength)
		}
		empty := func() {
			v.leave("other")
			for v.limiter.Waiting() > 0 {
				<-ends
			}
			v.enter("other", 1)
		}
		empty()
		v.wait("small", ends)
		<-time.After(burst + 1)
		if waiting := fill(); waiting != shortLine {
			t.Errorf("%d calls wait in a lasting line, want %d", waiting, shortLine)
		}
		empty()
		if waiting := fill(); waiting != lineLength {
			t.Errorf("%d calls wait in the next burst, want %d", waiting, lineLength)
		}
		empty()
	})
}

// TestWhoLeavesTheLine: a request that leaves the line takes no slot, and is no longer counted.
func TestWhoLeavesTheLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := full(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		ends := make(chan error, 1)
		go func() {
			_, err := v.limiter.Enter(ctx, "small")
			ends <- err
		}()
		synctest.Wait()
		cancel(gone)
		if err := <-ends; !errors.Is(err, gone) {
			t.Errorf("the call ended with %v", err)
		}
		if waiting := v.limiter.Waiting(); waiting != 0 {
			t.Errorf("%d calls wait", waiting)
		}
		v.leave("other")
		v.enter("another", 1)
	})
}

// slowBody is a body whose parts each arrive after a while.
type slowBody struct{ after time.Duration }

func (s slowBody) Read([]byte) (int, error) {
	<-time.After(s.after) // on the test's fake clock, so without delay
	return 0, io.EOF
}

func (slowBody) Close() error { return nil }

// TestSlowClientsLendTheirSlots: a client that sends its body drop by drop keeps no slot from
// others, and one whose body is there keeps its own.
func TestSlowClientsLendTheirSlots(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]int{0: 0, time.Minute: maxSlots} {
		synctest.Test(t, func(t *testing.T) {
			v := full(t)
			var reading sync.WaitGroup
			for _, slots := range v.slots {
				for _, slot := range slots {
					body := slot.Body(slowBody{after})
					reading.Go(func() { _, _ = io.ReadAll(body) })
				}
			}
			<-time.After(2 * lendAfter)
			ends := make(chan string, maxSlots)
			for i := range maxSlots {
				v.wait(fmt.Sprint(i), ends)
			}
			if len(ends) != want {
				t.Errorf("with bodies that take %s, %d others were let in, want %d", after, len(ends), want)
			}
			reading.Wait()
			for client, slots := range v.slots {
				for range slots {
					v.leave(client)
				}
			}
		})
	}
}

// TestWhoHasLeftLendsNothing: a request that gave its slot back goes on without one.
func TestWhoHasLeftLendsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &visits{t: t, slots: map[string][]*Slot{}}
		v.enter("small", 1)
		slot := v.slots["small"][0]
		slot.Leave()
		slot.Leave()
		var reading sync.WaitGroup
		reading.Go(func() { _, _ = io.ReadAll(slot.Body(slowBody{time.Minute})) })
		<-time.After(2 * lendAfter)
		v.limiter.check(t)
		if v.limiter.inside != 0 {
			t.Errorf("%d calls are inside when all have left", v.limiter.inside)
		}
		reading.Wait()
	})
}

// slowAnswer is a response that its client reads after a while.
type slowAnswer struct {
	http.ResponseWriter

	after time.Duration
}

func (a slowAnswer) Write(data []byte) (int, error) {
	<-time.After(a.after)
	return len(data), nil
}

// TestUnreadAnswersAreBounded: a client that reads none of its large responses gets no more of
// them, however many of its requests have lent their slots; other clients do.
func TestUnreadAnswersAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &visits{t: t, slots: map[string][]*Slot{}}
		var reading sync.WaitGroup
		for range 8 {
			v.enter("slow", 1)
			slot := v.slots["slow"][len(v.slots["slow"])-1]
			reading.Go(func() {
				defer slot.Leave()
				_, _ = slot.Answer(slowAnswer{after: time.Minute}).Write(make([]byte, maxUnread/8))
			})
			synctest.Wait()
		}
		if _, err := v.limiter.Enter(t.Context(), "slow"); lending.ErrorCode(err) !=
			lending.CodeUnavailable {
			t.Errorf("with %d MiB to read the next call is answered %v", maxUnread>>20, err)
		}
		v.enter("other", 1)
		v.leave("other")
		reading.Wait()
		v.enter("slow", 1)
		v.leave("slow")
		if len(v.limiter.clients) != 0 {
			t.Errorf("%d clients are known when all have left", len(v.limiter.clients))
		}
	})
}

// TestLimiterKeepsItsBounds has requests of several clients come, wait, lend, give up and leave at
// random.
func TestLimiterKeepsItsBounds(t *testing.T) {
	t.Parallel()
	var limiter Limiter
	var calls sync.WaitGroup
	for caller := range 300 {
		calls.Go(func() {
			chance := rand.New(rand.NewPCG(uint64(caller), 1))
			for range 50 {
				patience := time.Duration(chance.IntN(3_000)) * time.Microsecond
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				enter := limiter.Enter
				if chance.IntN(2) == 0 {
					enter = limiter.EnterPatient
				}
				slot, err := enter(ctx, fmt.Sprint(chance.IntN(6)))
				if err == nil {
					if chance.IntN(2) == 0 {
						slot.lend()()
					}
					limiter.check(t)
					slot.Leave()
				}
				cancel()
			}
		})
	}
	calls.Wait()
	limiter.check(t)
	if limiter.inside != 0 || limiter.Waiting() != 0 || len(limiter.clients) != 0 {
		t.Errorf("%d are inside and %v wait, of %d clients, when all have left",
			limiter.inside, limiter.waiting, len(limiter.clients))
	}
}

// check compares the limiter's counts with its clients.
func (l *Limiter) check(t *testing.T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	inside, waiting, idle := 0, [lines]int{}, maxSlots-l.inside
	for client, v := range l.clients {
		inside += v.inside
		for in := range v.line {
			waiting[in] += len(v.line[in])
		}
		if idle > 0 && v.waits() && v.inside < slotsPerClient {
			t.Errorf("client %s waits beside %d free slots", client, idle)
		}
	}
	if inside != l.inside || waiting != l.waiting || waiting[urgent] > lineLength ||
		waiting[patient] > patientLine {
		t.Errorf("%d are inside and %v wait, and the limiter counts %d and %v",
			inside, waiting, l.inside, l.waiting)
	}
}
