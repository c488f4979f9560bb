package sender

import (
	"net/url"
	"strconv"
	"strings"

	"drawbridge/internal/lending"
)

// Identity is what identifies an event besides its body, which has the fields of the
// specification's section 2.7 and no others. It is the same on every attempt and every
// re-send.
type Identity struct {
	// Kind is the kind of event, UID the event's id.
	Kind, UID string
	// Sequence is its number within the application; 0 is omitted.
	Sequence int64
	// Merchant is the event's merchant, Subject the object whose state it reports, such as
	// task/UID, and Reference the application's external reference. Empty ones are omitted.
	Merchant, Subject, Reference string
}

// TestIdentity is the identity of a test event, which belongs to no application.
func TestIdentity(kind lending.EventKind, uid string) Identity {
	return Identity{
		Kind: string(kind), UID: uid, Subject: "application/" + lending.SampleApplicationUID,
	}
}

// Headers returns the header fields of the event, in the order in which they are sent.
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
		// Percent-encode all but RFC 3986's unreserved characters: any text then fits into a header.
		encoded := strings.ReplaceAll(url.QueryEscape(i.Reference), "+", "%20")
		set.plain("x-drawbridge-reference", encoded)
	}
	return set
}
