// Package sender makes one HTTP request of a webhook, and knows no database: where it
// may go, its headers and signature, the connection, and what is kept of the answer
// (specification sections 5 and 6.1).
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
package sender
