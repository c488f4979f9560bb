// Package webhook tells partners what happened: it keeps their subscriptions,
// schedules a delivery of each event to each subscription that wants it, makes
// the attempts and writes down how they ended (specification sections 5 and 6).
//
// # A delivery
//
// An event, its deliveries and their jobs are written in the transaction of
// the change that caused them. From then on a delivery moves like this:
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
// its secret or headers do not open, is parked where it is.
//
// # An attempt
//
// [Sender.Send] makes at most one HTTP request, from the name lookup to the last
// byte of the answer within one deadline, and returns an [Attempt] that is fit
// for the log. The endpoint is taken to be hostile:
//
//   - where it may be is checked when a subscription is saved and again on the
//     address that is dialled ([Policy]), and no redirect leads elsewhere;
//   - what it sends is bounded: the head, the body on the wire, the body after
//     decompression, what is kept, and the time for all of it;
//   - what it says is made printable, and secrets that it echoes are masked,
//     before anything is stored or shown.
//
// HTTP/1.1 is written here byte by byte, because header names are in lower case
// on the wire and a request must never be repeated behind our back; HTTP/2 goes
// through net/http, one connection at a time.
//
// [Diagnose] explains a failed attempt, [ExamineSignature] a signature that does
// not match.
package webhook
