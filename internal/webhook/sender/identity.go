package sender

import (
	"net/url"
	"strconv"
	"strings"

	"drawbridge/internal/lending"
)

// Identity is what tells an event apart beyond its body, which has the fields of the
// specification's section 2.7 and no others. It is the same on every attempt and every
// re-send.
type Identity struct {
	// Kind is the kind of event, UID the event's own.
	Kind, UID string
	// Sequence is its number within the application; 0 is left out.
	Sequence int64
	// Merchant is whose it is, Subject the object whose state it tells, such as
	// task/UID, and Reference the application's external reference. Empty ones are left
	// out.
	Merchant, Subject, Reference string
}

// TestIdentity is that of a test event, which is no event of any application.
func TestIdentity(kind lending.EventKind, uid string) Identity {
	return Identity{
		Kind: string(kind), UID: uid, Subject: "application/" + lending.SampleApplicationUID,
	}
}

// Headers are the header fields of the event, in the order in which they are sent.
func (i Identity) Headers() []Header {
	set := make(headerSet, 0, 6)
	set.plain("x-drawbridge-event", i.Kind)
	set.plain("x-drawbridge-event-id", i.UID)
	if i.Sequence > 0 {
		set.plain("x-drawbridge-sequence", strconv.FormatInt(i.Sequence, 10))
	}
	if i.Merchant != "" {
		set.plain("x-drawbridge-merchant", i.Merchant)
	}
	if i.Subject != "" {
		set.plain("x-drawbridge-subject", i.Subject)
	}
	if i.Reference != "" {
		// Every byte but RFC 3986's unreserved characters as %XX: any text fits into a header.
		encoded := strings.ReplaceAll(url.QueryEscape(i.Reference), "+", "%20")
		set.plain("x-drawbridge-reference", encoded)
	}
	return set
}
