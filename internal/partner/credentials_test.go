package partner

import (
	"testing"

	"github.com/google/uuid"
)

func TestClientIDs(t *testing.T) {
	t.Parallel()
	uid := uuid.MustParse("018f3b9e-7c1a-7d60-9c55-3e1f0a2b4c6d")
	const id = "dbc_018f3b9e7c1a7d609c553e1f0a2b4c6d"
	if got := clientID(uid); got != id {
		t.Errorf("got %s, want %s", got, id)
	}
	tests := map[string]bool{
		id:                                      true,
		"":                                      false,
		"dbc_":                                  false,
		"018f3b9e7c1a7d609c553e1f0a2b4c6d":      false,
		"dbc_018F3B9E7C1A7D609C553E1F0A2B4C6D":  false,
		"dbc_018f3b9e7c1a7d609c553e1f0a2b4c6":   false,
		"dbc_018f3b9e7c1a7d609c553e1f0a2b4c6d0": false,
		"dbc_018f3b9e-7c1a-7d60-9c55-3e1f0a2b":  false,
		"dbc_018f3b9e7c1a7d609c553e1f0a2b4c6\x00": false,
	}
	for text, want := range tests {
		got, ok := clientUID(text)
		if ok != want || ok && got != uid {
			t.Errorf("%q: got %v, %v, want %v", text, got, ok, want)
		}
	}
}

// Every text accepted as a client id is safe to pass to the database, and is the only text for
// its UUID.
func FuzzClientUID(f *testing.F) {
	f.Add("dbc_018f3b9e7c1a7d609c553e1f0a2b4c6d")
	f.Add("dbc_018F3B9E7C1A7D609C553E1F0A2B4C6D")
	f.Add("dbc_\x00")
	f.Add("\xff")
	f.Fuzz(func(t *testing.T, text string) {
		uid, ok := clientUID(text)
		if ok && clientID(uid) != text {
			t.Errorf("%q reads as %s, which is written %q", text, uid, clientID(uid))
		}
		if !ok && lookupID(text) != "" {
			t.Errorf("%q is no client id but is looked up", text)
		}
	})
}
