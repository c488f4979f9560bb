package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drawbridge/internal/idempotency"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

func TestFirstReplyIsReplayed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		reply idempotency.Reply
	}{
		{"created", idempotency.Reply{Status: 201, Body: []byte(`{"a":"ü"}`)}},
		{"bytes that are no text", idempotency.Reply{Status: 200, Body: []byte("\x00\xff\\x41'")}},
		{"empty body", idempotency.Reply{Status: 200, Body: []byte{}}},
	}
	d := newDesk(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			request := d.request(fmt.Sprintf("key-%d", len(test.name)), "content")
			first := d.mustRun(t, request, func(*postgres.Tx) (idempotency.Reply, error) {
				return test.reply, nil
			})
			if diff := cmp.Diff(test.reply, first); diff != "" {
				t.Errorf("first answer:\n%s", diff)
			}
			want := test.reply
			want.Replayed = true
			for range 2 {
				d.advance(time.Hour)
				if diff := cmp.Diff(want, d.mustRun(t, request, never(t))); diff != "" {
					t.Errorf("replay:\n%s", diff)
				}
			}
		})
	}
}

func TestReplyWithoutBodyIsStored(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.mustRun(t, d.request("k", "c"), func(*postgres.Tx) (idempotency.Reply, error) {
		return idempotency.Reply{Status: http.StatusOK}, nil
	})
	if reply := d.mustRun(t, d.request("k", "c"), never(t)); len(reply.Body) != 0 ||
		!reply.Replayed || reply.Status != http.StatusOK {
		t.Errorf("replay %+v, want an empty 200", reply)
	}
}

func TestWithoutKeyEveryRequestRuns(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for range 3 {
		if reply := d.mustRun(t, d.request("", "c"), register("x")); reply.Replayed {
			t.Error("a reply without a key was replayed")
		}
	}
	refusal := lending.NewError(lending.CodeInvalidState, "no")
	if _, err := d.run(d.request("", "c"), refuse(refusal)); !errors.Is(err, refusal) {
		t.Errorf("got %v, want the operation's own refusal", err)
	}
	if visitors, keys := d.count(t, "visitors"), d.count(t, "idempotency_keys"); visitors != 3 ||
		keys != 0 {
		t.Errorf("%d visitors and %d keys, want 3 and none", visitors, keys)
	}
}

func TestKeysBelongToClientAndMerchant(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	requests := []idempotency.Request{d.request("k", "c"), d.request("k", "c"), d.request("k", "c")}
	requests[1].ClientID = otherClient
	requests[2].MerchantUID = d.merchants[1]
	for i, request := range requests {
		if reply := d.mustRun(t, request, register("x")); reply.Replayed {
			t.Errorf("request %d got the reply of another client or merchant", i)
		}
	}
	for _, request := range requests {
		if reply := d.mustRun(t, request, never(t)); !reply.Replayed {
			t.Error("a reply was not kept")
		}
	}
}

func TestKeyWithOtherContentIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.mustRun(t, d.request("k", "content"), register("x"))
	_, err := d.run(d.request("k", "other content"), never(t))
	wantCode(t, err, lending.CodeIdempotencyMismatch)
	if reply := d.mustRun(t, d.request("k", "content"), never(t)); !reply.Replayed {
		t.Error("a refused misuse spoilt the stored reply")
	}
}

// TestRefusalsLeaveTheKeyFree refuses under a key and then lets the corrected
// request, or the same one, succeed under it.
func TestRefusalsLeaveTheKeyFree(t *testing.T) {
	t.Parallel()
	codes := []lending.Code{
		lending.CodeValidation, lending.CodeNotFound, lending.CodeInvalidState,
		lending.CodeApplicationNotFound, lending.CodeUnauthorized, lending.CodeForbidden,
		lending.CodeRateLimited, lending.CodeDrawPending, lending.CodeInternal,
	}
	d := newDesk(t)
	for _, code := range codes {
		for _, next := range []string{"c", "corrected"} {
			key, refusal := string(code)+"-"+next, lending.NewError(code, "first")
			if _, err := d.run(d.request(key, "c"), refuse(refusal)); !errors.Is(err, refusal) {
				t.Errorf("%s: got %v, want the refusal itself", code, err)
			}
			if reply := d.mustRun(t, d.request(key, next), register("later")); reply.Replayed {
				t.Errorf("%s, then %q: the operation did not run", code, next)
			}
		}
	}
	if got := d.count(t, "visitors WHERE name = 'nobody'"); got != 0 {
		t.Errorf("%d refused operations left their work behind", got)
	}
}

// TestRepliesOutliveTheEncoding has releases that encode a request in different ways, the older one
// with one encoding, find each other's replies.
func TestRepliesOutliveTheEncoding(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	encoded := func(key string, contents ...string) idempotency.Request {
		request := d.request(key, contents[0])
		for _, content := range contents[1:] {
			request.Fingerprint = append(request.Fingerprint, d.request(key, content).Fingerprint...)
		}
		return request
	}
	tests := []struct {
		name          string
		first, second []string
		same          bool
	}{
		{"upgraded", []string{"old"}, []string{"old", "new"}, true},
		{"not yet upgraded", []string{"old", "new"}, []string{"old"}, true},
		{"alike by the newer encoding", []string{"old", "new"}, []string{"other", "new"}, true},
		{"stored by the newer encoding alone", []string{"new"}, []string{"old", "new"}, true},
		{"another content", []string{"old", "new"}, []string{"other", "else"}, false},
		{"another content, old", []string{"old"}, []string{"other", "new"}, false},
	}
	for _, test := range tests {
		d.mustRun(t, encoded(test.name, test.first...), register("x"))
		reply, err := d.run(encoded(test.name, test.second...), never(t))
		if test.same && (err != nil || string(reply.Body) != "hello x") {
			t.Errorf("%s: got %q, %v, want the stored reply", test.name, reply.Body, err)
		}
		if !test.same {
			wantCode(t, err, lending.CodeIdempotencyMismatch)
		}
	}
	// The previous release overwrites an expired reply but not the column that it does not have.
	d.mustRun(t, encoded("k", "old", "new"), register("x"))
	d.exec(t, `UPDATE idempotency_keys SET fingerprint = $1 WHERE key = 'k'`,
		d.request("k", "overwritten").Fingerprint[0][:])
	_, err := d.run(encoded("k", "old", "new"), never(t))
	wantCode(t, err, lending.CodeIdempotencyMismatch)
}

// Release 0.1.0 stored refusals under their keys.
func TestStoredRefusalLeavesTheKeyFree(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.mustRun(t, d.request("k", "c"), register("x"))
	d.exec(t, `UPDATE idempotency_keys SET status = 400`)
	if reply := d.mustRun(t, d.request("k", "corrected"), register("y")); reply.Replayed {
		t.Error("the refusal was replayed")
	}
	if reply := d.mustRun(t, d.request("k", "corrected"), never(t)); string(reply.Body) != "hello y" {
		t.Errorf("replayed %q, want the success", reply.Body)
	}
}

func TestInternalErrorsGoUpUnchanged(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	cause := errors.New("disk on fire")
	_, err := d.run(d.request("k", "c"), refuse(fmt.Errorf("registering: %w", cause)))
	if !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
	if visitors, keys := d.count(t, "visitors"), d.count(t, "idempotency_keys"); visitors+keys > 0 {
		t.Errorf("%d visitors and %d keys are left of a failed request", visitors, keys)
	}
}

func TestKeyIsFreeAfterADay(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.mustRun(t, d.request("k", "c"), register("first"))
	d.advance(24*time.Hour - time.Microsecond)
	if reply := d.mustRun(t, d.request("k", "c"), never(t)); string(reply.Body) != "hello first" {
		t.Errorf("just before its end the reply is %q", reply.Body)
	}
	d.advance(time.Microsecond)
	// The expired row is still there, but other content may use its key.
	if reply := d.mustRun(t, d.request("k", "new"), register("second")); reply.Replayed {
		t.Error("an expired reply was replayed")
	}
	d.advance(23 * time.Hour)
	if reply := d.mustRun(t, d.request("k", "new"), never(t)); string(reply.Body) != "hello second" {
		t.Errorf("the reply is %q, want the second", reply.Body)
	}
	if got := d.count(t, "idempotency_keys"); got != 1 {
		t.Errorf("%d rows for one key", got)
	}
}

func TestPurgeDeletesWhatExpired(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i := range 5 {
		d.mustRun(t, d.request(fmt.Sprintf("old-%d", i), "c"), register("x"))
	}
	d.advance(12 * time.Hour)
	d.mustRun(t, d.request("young", "c"), register("x"))
	d.advance(12 * time.Hour)
	for _, want := range []int{2, 2, 1, 0} {
		if got, err := d.Purge(t.Context(), 2); err != nil || got != want {
			t.Errorf("purged %d, %v, want %d", got, err, want)
		}
	}
	if reply := d.mustRun(t, d.request("young", "c"), never(t)); !reply.Replayed {
		t.Error("a reply that is kept was purged")
	}
}

func TestCancelledRequestLeavesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := d.Run(ctx, d.request("k", "c"), func(tx *postgres.Tx) (idempotency.Reply, error) {
		reply, err := register("x")(tx)
		cancel()
		return reply, err
	})
	if err == nil {
		t.Error("a cancelled request succeeded")
	}
	// The driver rolls back asynchronously.
	reply, err := d.run(d.request("k", "c"), register("x"))
	for lending.ErrorCode(err) == lending.CodeIdempotencyConflict {
		reply, err = d.run(d.request("k", "c"), register("x"))
	}
	if err != nil || reply.Replayed {
		t.Errorf("got %+v, %v, want a fresh run", reply, err)
	}
	if got := d.count(t, "visitors"); got != 1 {
		t.Errorf("%d visitors, want 1", got)
	}
}
