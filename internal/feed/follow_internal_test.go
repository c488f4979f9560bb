package feed

import (
	"testing"

	"github.com/google/uuid"
)

// TestNewWaiterMissesNothing begins to wait between the read of the feed for the
// requests that waited already and their waking: that read did not cover the newcomer,
// whose earlier entries must neither count as seen nor be forgotten.
func TestNewWaiterMissesNothing(t *testing.T) {
	t.Parallel()
	service := New(nil)
	mine, others := uuid.New(), uuid.New()
	ahead := service.enter(Query{MerchantUIDs: []uuid.UUID{others}}, 20)
	from, _ := service.leastSeen()
	<-service.waiterAdded
	newcomer := service.enter(Query{MerchantUIDs: []uuid.UUID{mine}}, 10)

	service.wake(from, []announcement{{Position: 21, MerchantUID: uuid.New()}})

	if ahead.seen != 21 {
		t.Errorf("who waited has seen up to %d, want 21", ahead.seen)
	}
	if newcomer.seen != 10 {
		t.Errorf("the newcomer counts %d as seen, want 10", newcomer.seen)
	}
	select {
	case <-service.waiterAdded:
	default:
		t.Error("nobody looks for what stands before the newcomer's wait")
	}
	if from, _ := service.leastSeen(); from != 10 {
		t.Errorf("the next look begins after %d, want 10", from)
	}

	service.wake(10, []announcement{{Position: 15, MerchantUID: mine}})
	select {
	case <-newcomer.woken:
	default:
		t.Error("the newcomer was not woken by its event")
	}
}
