package operator

import (
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
	"pgregory.net/rapid"
)

// TestCodeWindow checks the rule of codes for every secret and time: a code is accepted if its
// step is the present one or a neighbour, and later than the last one used.
func TestCodeWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := totpAlphabet.EncodeToString(rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "secret"))
		now := time.Unix(rapid.Int64Range(1e9, 4e9).Draw(t, "now"), 0)
		off := rapid.Int64Range(-5, 5).Draw(t, "off")
		last := now.Unix()/codeStep + rapid.Int64Range(-4, 4).Draw(t, "last")
		step := now.Unix()/codeStep + off
		code, err := totp.GenerateCode(text, time.Unix(step*codeStep, 0))
		if err != nil {
			t.Fatal(err)
		}
		got, ok := matchStep(text, code, now, last)
		want := off >= -codeSkew && off <= codeSkew && step > last
		if ok != want && !sameCode(text, code, now, last) {
			t.Fatalf("step %+d after %d: taken = %v, want %v", off, last, ok, want)
		}
		if ok && got <= last {
			t.Fatalf("a used step %d came back", got)
		}
	})
}

// sameCode reports whether another acceptable step happens to have the same digits.
func sameCode(text, code string, now time.Time, last int64) bool {
	for step := now.Unix()/codeStep - codeSkew; step <= now.Unix()/codeStep+codeSkew; step++ {
		other, err := totp.GenerateCode(text, time.Unix(step*codeStep, 0))
		if err == nil && other == code && step > last {
			return true
		}
	}
	return false
}

func FuzzCleanCode(f *testing.F) {
	for _, seed := range []string{
		"123 456", "ABCD-efgh", "１２３４５６", "\x00\xff", strings.Repeat("9", 99),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		clean := cleanCode(typed)
		if len(clean) > 64 || cleanCode(clean) != clean || clean != strings.ToLower(clean) {
			t.Errorf("%q became %q", typed, clean)
		}
		if _, ok := matchStep("JBSWY3DPEHPK3PXP", clean, time.Unix(1<<40, 0), 0); ok && len(clean) != 6 {
			t.Errorf("%q was taken for a code", clean)
		}
	})
}
