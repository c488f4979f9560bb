package lending_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"drawbridge/internal/lending"
)

var moneySyntax = regexp.MustCompile(`\A\d{1,12}(\.\d{1,2})?\z`)

func FuzzParseMoney(f *testing.F) {
	for _, seed := range []string{
		"0", "1234.50", "999999999999.99", "1000000000000", "1.", ".1", "-1", "+1", "1e9", "1_0",
		"0x1p4", "NaN", "1.234", "٣", "1\x00", " 1", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		amount, err := lending.ParseMoney(text)
		if (err == nil) != moneySyntax.MatchString(text) {
			t.Fatalf("ParseMoney(%q): %v", text, err)
		}
		if err != nil {
			return
		}
		if amount.IsNegative() {
			t.Fatalf("%q is negative", text)
		}
		again, err := lending.ParseMoney(amount.String())
		if err != nil || !again.Equal(amount) || again.String() != amount.String() {
			t.Fatalf("%q is %s and then %s, %v", text, amount, again, err)
		}
	})
}

func FuzzParseSchedule(f *testing.F) {
	for _, seed := range []string{
		"100", "50,50", "40, 40, 20", "33.33,33.33,33.34", "100,", ",", "0,100", "150,-50", "1e2",
		strings.Repeat("2,", 49) + "2", strings.Repeat("1,", 99) + "1",
	} {
		f.Add(seed, int64(1_000_000))
	}
	f.Fuzz(func(t *testing.T, text string, cents int64) {
		shares, err := lending.ParseSchedule(text)
		if err != nil {
			return
		}
		again, err := lending.ParseSchedule(shares.String())
		if err != nil || again.String() != shares.String() {
			t.Fatalf("%q is %s and then %s, %v", text, shares, again, err)
		}
		// Any amount from 0.00 to 42949672.95.
		total := lending.Cents(cents & 0xffff_ffff)
		if sum := sum(shares.Amounts(total)...); !sum.Equal(total) {
			t.Fatalf("%s of %s add up to %s", shares, total, sum)
		}
	})
}

func FuzzParseMetadata(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"projectName":"a","completionDate":"2026-11-21"}`, `{"completionDate":"2026-02-30"}`,
		`{"systemDetails":{"capacity":"8 kW","panelCount":24,"inverterType":"x"}}`,
		`{"a":"\ud83d\ude00"}`, `{"a":"\ud83d"}`, `{"a":"\u0000"}`, `{"a":1,"a":2}`, `{"a":1e999}`,
		`{"a":[[[[[]]]]]}`, `[]`, `null`, `"x"`, `{"a":`, "\xff", "{\"\x00\":1}",
		`{"\\u0000":"\\\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		parsed, err := lending.ParseMetadata(raw)
		if err != nil {
			if lending.ErrorCode(err) == lending.CodeInternal {
				t.Fatalf("%q is an internal error: %v", raw, err)
			}
			return
		}
		kept := parsed.JSON()
		var before, after map[string]any
		if json.Unmarshal(raw, &before) != nil || json.Unmarshal(kept, &after) != nil {
			t.Fatalf("%q is kept as %q", raw, kept)
		}
		if len(before) != len(after) || bytes.Contains(kept, []byte{0}) {
			t.Fatalf("%q is kept as %q", raw, kept)
		}
		again, err := lending.ParseMetadata(kept)
		if err != nil || !bytes.Equal(again.JSON(), kept) {
			t.Fatalf("%q is kept as %q and then %q, %v", raw, kept, again.JSON(), err)
		}
	})
}
