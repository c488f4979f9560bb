package delivery_test

import (
	"testing"

	"drawbridge/internal/webhook/delivery"
)

func TestParseAnswer(t *testing.T) {
	t.Parallel()
	type answer struct {
		status, class int
		ok            bool
	}
	for text, want := range map[string]answer{
		"": {0, 0, true}, "503": {503, 0, true}, "100": {100, 0, true}, "999": {999, 0, true},
		"5xx": {0, 5, true}, "4XX": {0, 4, true}, "1xX": {0, 1, true}, "9xx": {0, 9, true},
		"99": {}, "1000": {}, "5": {}, "0xx": {}, "10xx": {}, "xx": {}, "-1xx": {}, "5x": {},
		"ok": {}, "503xx": {}, "50 3": {},
	} {
		var got answer
		if got.status, got.class, got.ok = delivery.ParseAnswer(text); got != want {
			t.Errorf("%q is read as %+v, want %+v", text, got, want)
		}
	}
}
