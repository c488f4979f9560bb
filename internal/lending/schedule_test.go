package lending_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"drawbridge/internal/lending"
)

func TestParseSchedule(t *testing.T) {
	t.Parallel()
	fifty := strings.TrimSuffix(strings.Repeat("2,", 50), ",")
	fiftyOne := strings.TrimSuffix(strings.Repeat("1,", 51), ",")
	for _, tc := range []struct {
		text, want string
		err        error
	}{
		{text: "100", want: "100"},
		{text: "50,50", want: "50,50"},
		{text: "40, 40, 20", want: "40,40,20"},
		{text: "33.33,33.33,33.34", want: "33.33,33.33,33.34"},
		{text: "99.9999,0.0001", want: "99.9999,0.0001"},
		{text: fifty, want: fifty},
		{text: fiftyOne, err: lending.ErrScheduleLength},
		{text: "40,40", err: lending.ErrScheduleSum},
		{text: "60,60", err: lending.ErrScheduleSum},
		{text: "33.33,33.33,33.33", err: lending.ErrScheduleSum},
		{text: "", err: lending.ErrScheduleSyntax},
		{text: "100,", err: lending.ErrScheduleSyntax},
		{text: "100,0", err: lending.ErrScheduleSyntax},
		{text: "150,-50", err: lending.ErrScheduleSyntax},
		{text: "40;40;20", err: lending.ErrScheduleSyntax},
		{text: "40 40 20", err: lending.ErrScheduleSyntax},
		{text: "forty,sixty", err: lending.ErrScheduleSyntax},
	} {
		got, err := lending.ParseSchedule(tc.text)
		if !errors.Is(err, tc.err) || err == nil && got.String() != tc.want {
			t.Errorf("ParseSchedule(%q) = %s, %v; want %q, %v", tc.text, got, err, tc.want, tc.err)
		}
	}
}

func TestScheduleAmounts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ schedule, total, want string }{
		{"100", "10000", "10000.00"},
		{"50,50", "10000.01", "5000.01 5000.00"}, // 5000.005 goes up
		{"40,40,20", "10000", "4000.00 4000.00 2000.00"},
		{"40,40,20", "9999.99", "4000.00 4000.00 1999.99"},
		{"33.33,33.33,33.34", "10000", "3333.00 3333.00 3334.00"},
		{"33.33,33.33,33.34", "0.02", "0.01 0.01 0.00"},
		{"40,40,20", "0.01", "0.00 0.00 0.01"},
		// Ten times 0.005 rounds up to more than the total, so the later stages get nothing.
		{
			"10,10,10,10,10,10,10,10,10,10", "0.05",
			"0.01 0.01 0.01 0.01 0.01 0.00 0.00 0.00 0.00 0.00",
		},
	} {
		got := strings.Join(texts(schedule(t, tc.schedule).Amounts(money(t, tc.total))), " ")
		if got != tc.want {
			t.Errorf("%s of %s = %s, want %s", tc.schedule, tc.total, got, tc.want)
		}
	}
}

func TestScheduleAmountsAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shares, _ := drawSchedule(t)
		total := lending.Cents(rapid.Int64Range(0, 99_999_999_999_999).Draw(t, "total"))
		amounts := shares.Amounts(total)
		if sum := sum(amounts...); !sum.Equal(total) {
			t.Fatalf("%s of %s add up to %s", shares, total, sum)
		}
		if slices.ContainsFunc(amounts, lending.Money.IsNegative) {
			t.Fatalf("%s of %s has a negative stage: %v", shares, total, amounts)
		}
	})
}

func TestScheduleTravels(t *testing.T) {
	t.Parallel()
	var got lending.Schedule
	for _, source := range []any{"40,40,20", []byte("40,40,20")} {
		if err := got.Scan(source); err != nil || got.String() != "40,40,20" {
			t.Errorf("scanned %s, %v", got, err)
		}
	}
	for _, source := range []any{nil, 100, "40,40", []byte("x")} {
		if err := got.Scan(source); err == nil {
			t.Errorf("%v is taken for a schedule", source)
		}
	}
	if value, err := got.Value(); err != nil || value != "40,40,20" {
		t.Errorf("Value() = %v, %v", value, err)
	}
	if out, err := json.Marshal(got); err != nil || string(out) != `["40","40","20"]` {
		t.Errorf("marshalled %s, %v", out, err)
	}
}

func TestStagesCountFromOne(t *testing.T) {
	t.Parallel()
	var got []string
	for _, stage := range schedule(t, "40,40,20").Stages(money(t, "500")) {
		got = append(got, fmt.Sprintf("%d:%s%%=%s", stage.Number, stage.Percent, stage.Scheduled))
	}
	want := []string{"1:40%=200.00", "2:40%=200.00", "3:20%=100.00"}
	if !slices.Equal(got, want) {
		t.Errorf("stages %v, want %v", got, want)
	}
}

// drawSchedule generates a schedule of one to eight stages. It also returns the shares in
// ten-thousandths of a percent.
func drawSchedule(t *rapid.T) (lending.Schedule, []int64) {
	const whole = 1_000_000
	cuts := rapid.SliceOfNDistinct(rapid.Int64Range(1, whole-1), 0, 7, rapid.ID).Draw(t, "cuts")
	slices.Sort(cuts)
	var shares []int64
	var parts []string
	before := int64(0)
	for _, cut := range append(cuts, whole) {
		shares = append(shares, cut-before)
		parts = append(parts, fmt.Sprintf("%d.%04d", (cut-before)/10_000, (cut-before)%10_000))
		before = cut
	}
	parsed, err := lending.ParseSchedule(strings.Join(parts, ","))
	if err != nil {
		t.Fatalf("schedule %v: %v", parts, err)
	}
	return parsed, shares
}
