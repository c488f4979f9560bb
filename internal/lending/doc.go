// Package lending is the domain: money, statuses and their transitions, draw
// and decision rules, events and the closed list of error codes.
//
// Everything in it is pure. It imports nothing but the standard library and
// the decimal package, reads no clock and touches no network or database, so
// that each rule can be read and tested on its own.
package lending
