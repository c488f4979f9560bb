// Package sender makes one HTTP request of a webhook, without a database: where it may
// go, its headers and signature, the connection, and what is stored of the answer
// (specification sections 5 and 6.1).
//
// [Sender.Send] makes at most one HTTP request, from the name lookup to the last byte of
// the answer within one deadline, and returns an [Attempt] that is safe to log. The
// endpoint is assumed to be hostile:
//
//   - its destination is checked when a subscription is saved and again on the
//     address that is dialled ([Policy]), and no redirect is followed;
//   - what it sends is bounded: the head, the body on the wire, the body after
//     decompression, what is kept, and the time for all of it;
//   - what it sends is made printable, and secrets that it echoes are masked,
//     before anything is stored or shown.
//
// HTTP/1.1 is written here byte by byte, because header names must be in lower case on
// the wire and no library may repeat a request by itself; HTTP/2 goes through net/http,
// one connection at a time.
package sender
