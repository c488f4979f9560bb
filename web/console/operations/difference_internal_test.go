package operations

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"drawbridge/views/operations"
)

func TestStateDifferences(t *testing.T) {
	t.Parallel()
	got := stateDifferences(
		[]byte(`{"role":"support","tags":["a"],"limits":{"rate":5,"burst":1},"gone":null}`),
		[]byte(`{"role":"admin","tags":["a"],"limits":{"rate":5,"burst":2},"token":"abc",`+
			`"code":"SOLAR-3"}`))
	want := []operations.Difference{
		{Field: "code", After: "SOLAR-3", HasAfter: true}, // of a product
		{Field: "gone", Before: "none", HasBefore: true},
		{Field: "limits.burst", Before: "1", After: "2", HasBefore: true, HasAfter: true},
		{Field: "role", Before: "support", After: "admin", HasBefore: true, HasAfter: true},
		{Field: "token", After: "[hidden]", HasAfter: true},
		{Field: "limits.rate", Before: "5", After: "5", HasBefore: true, HasAfter: true},
		{Field: "tags", Before: `["a"]`, After: `["a"]`, HasBefore: true, HasAfter: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzStateDifferences(f *testing.F) {
	f.Add([]byte(`{"a":{"b":{"c":{"d":{"e":{"f":{"g":1}}}}}}}`), []byte(`[1,2]`))
	f.Add([]byte(`{"":{"":""}}`), []byte("\xff"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		for _, difference := range stateDifferences(before, after) {
			if !difference.HasBefore && !difference.HasAfter {
				t.Errorf("%q is on neither side", difference.Field)
			}
		}
	})
}
