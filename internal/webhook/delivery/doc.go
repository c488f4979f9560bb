// Package delivery publishes events and delivers them to subscriptions: it schedules a delivery
// of each event to each subscription that wants it, makes the attempts, records their outcomes,
// and reads the log of events, deliveries and attempts (specification section 6).
//
// An event and the list of subscriptions it must be delivered to are written in the
// transaction of the change that caused them; package outbox creates the deliveries and
// their jobs once that has committed. From then on a delivery moves like this:
//
//	            +-----------------> delivered
//	            |   2xx                 ^
//	pending ----+                       | 2xx
//	            |   anything else       |
//	            +-----------------> retrying ----> failed
//	                                       third attempt
//
// A delivery moves from pending or retrying to cancelled when its subscription is deleted
// or an operator cancels it. If its subscription is paused, or stopped because its secret
// or headers cannot be decrypted, the delivery is parked where it is; if its endpoint is
// busy, it is held back in its row until earlier attempts end.
//
// deliver.go has the path of an attempt from its job to its recorded outcome. Attempts
// that reach the same step at the same time share its statement ([batcher]), and each
// endpoint has a bounded number of requests in flight ([limiter]).
//
// # Yielding to API requests
//
// [Gate] counts the API requests that this process is answering. While one is open, or
// was within the last quarter of a second, and the engine is loaded, that is, several
// attempts share statements or wait for a slot:
//
//   - a shared statement waits until no API request is open, for 25 ms at most, before it
//     runs and once more after it; it is small and runs alone, and it may be larger the
//     longer it waited;
//   - a request that had to wait for one of the few send slots then waits in the same way
//     once more;
//   - enqueuing due deliveries and moving outcomes into the summaries first wait this way.
//
// An attempt that is alone does not check. Everything that yields does so through [Gate].
package delivery
