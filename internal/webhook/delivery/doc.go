// Package delivery publishes events and brings them to subscriptions: it schedules a
// delivery of each event to each subscription that wants it, makes the attempts, records
// how they ended, and reads the log of all of that (specification section 6).
//
// An event and what it owes are written in the transaction of the change that caused
// them; package outbox makes its deliveries and their jobs once that has committed. From
// then on a delivery moves like this:
//
//	            +-----------------> delivered
//	            |   2xx                 ^
//	pending ----+                       | 2xx
//	            |   anything else       |
//	            +-----------------> retrying ----> failed
//	                                       third attempt
//
// and to cancelled from pending and retrying, when its subscription is deleted
// or an operator cancels it. One of a subscription that is paused, or stopped because
// its secret or headers do not open, is parked where it is; one whose endpoint is busy
// is held back in its row until earlier attempts end.
//
// deliver.go has the path of an attempt from its job to its recorded outcome. Attempts
// that come to the same step at a time share its statement ([batcher]), and each
// endpoint has a bounded number of requests in flight ([limiter]).
//
// # Yielding to API requests
//
// [Gate] counts the API requests that this process answers. While one is open, or was
// within the last quarter of a second, and the engine is loaded, that is, several attempts share
// statements or wait for a slot:
//
//   - a shared statement waits until no API request is open, 25 ms at most, before it
//     and once more after it; it is small and runs alone, and grows with the time that
//     it waited;
//   - a request to an endpoint that had to wait for one of the few send slots waits so
//     once more;
//   - enqueuing what is due, and moving outcomes into the summaries, wait so before.
//
// An attempt that is alone does not look. Everything that does is a call of [Gate].
package delivery
