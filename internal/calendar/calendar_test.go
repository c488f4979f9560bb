package calendar_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"drawbridge/internal/calendar"
)

// zones have clock changes of every awkward kind: at midnight (Cairo, Beirut), a minute after it
// (St. John's), by half an hour (Lord Howe), over a whole day (Apia), and none.
var zones = []string{
	"America/New_York", "UTC", "Africa/Cairo", "Asia/Beirut", "America/St_Johns",
	"Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo", "Pacific/Kiritimati",
}

func in(t testing.TB, zone string) *time.Location {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return location
}

func date(t testing.TB, text string) calendar.Date {
	t.Helper()
	day, err := calendar.ParseDate(text)
	if err != nil {
		t.Fatal(err)
	}
	return day
}

// office returns a lender in New York that observes Thanksgiving, open from nine to five.
func office(t testing.TB) calendar.Calendar {
	t.Helper()
	return calendar.Calendar{
		Zone:     in(t, "America/New_York"),
		Holidays: []calendar.Date{date(t, "2026-11-26")},
		Hours:    calendar.Hours{Opens: 9 * 60, Closes: 17 * 60},
		Cutoff:   15 * 60,
	}
}

func TestBusinessDays(t *testing.T) {
	t.Parallel()
	c := office(t)
	for _, test := range []struct{ at, day, starts, ends, cutoff string }{
		{
			"2026-11-24T12:00:00-05:00", "2026-11-24", "2026-11-24T00:00:00-05:00",
			"2026-11-25T00:00:00-05:00", "2026-11-24T15:00:00-05:00",
		},
		{ // exactly at the cut-off; the next one is after a holiday
			"2026-11-25T15:00:00-05:00", "2026-11-25", "2026-11-25T00:00:00-05:00",
			"2026-11-26T00:00:00-05:00", "2026-11-27T15:00:00-05:00",
		},
		{ // the holiday belongs to the day after it
			"2026-11-26T12:00:00-05:00", "2026-11-27", "2026-11-26T00:00:00-05:00",
			"2026-11-28T00:00:00-05:00", "2026-11-27T15:00:00-05:00",
		},
		{ // a weekend on which the clocks go forward: 71 hours to Monday's end
			"2026-03-07T23:59:59-05:00", "2026-03-09", "2026-03-07T00:00:00-05:00",
			"2026-03-10T00:00:00-04:00", "2026-03-09T15:00:00-04:00",
		},
		{ // Friday in New York is Saturday in UTC
			"2026-10-31T02:00:00Z", "2026-10-30", "2026-10-30T00:00:00-04:00",
			"2026-10-31T00:00:00-04:00", "2026-11-02T15:00:00-05:00",
		},
	} {
		instant, err := time.Parse(time.RFC3339, test.at)
		if err != nil {
			t.Fatal(err)
		}
		day := c.DayOf(instant)
		for _, got := range [][2]string{
			{day.String(), test.day},
			{c.Start(day).Format(time.RFC3339), test.starts},
			{c.End(day).Format(time.RFC3339), test.ends},
			{c.NextCutoff(instant).Format(time.RFC3339), test.cutoff},
		} {
			if got[0] != got[1] {
				t.Errorf("%s: got %s, want %s", test.at, got[0], got[1])
			}
		}
	}
}

func TestBusinessHours(t *testing.T) {
	t.Parallel()
	c := office(t)
	for _, test := range []struct {
		from, to string
		want     time.Duration
	}{
		{"2026-11-24T10:00:00-05:00", "2026-11-24T11:30:00-05:00", 90 * time.Minute},
		{"2026-11-24T16:00:00-05:00", "2026-11-25T10:00:00-05:00", 2 * time.Hour},
		{"2026-11-25T16:00:00-05:00", "2026-11-27T10:00:00-05:00", 2 * time.Hour},
		{"2026-11-27T20:00:00-05:00", "2026-11-30T08:00:00-05:00", 0},
		{"2026-11-24T11:00:00-05:00", "2026-11-24T10:00:00-05:00", 0},
		{"2026-03-06T16:00:00-05:00", "2026-03-09T10:00:00-04:00", 2 * time.Hour},
		{"2026-11-20T00:00:00-05:00", "2026-12-01T00:00:00-05:00", 6 * 8 * time.Hour},
	} {
		from, _ := time.Parse(time.RFC3339, test.from)
		to, err := time.Parse(time.RFC3339, test.to)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Between(from, to); got != test.want {
			t.Errorf("from %s to %s: %s, want %s", test.from, test.to, got, test.want)
		}
	}
	// Hours that a day does not have are not counted: two to three in the morning.
	c.Hours = calendar.Hours{Opens: 0, Closes: 24 * 60}
	c.Zone = in(t, "Africa/Cairo") // Friday 2026-04-24 has 23 hours
	day := date(t, "2026-04-24")
	if got := c.Between(c.Start(day), c.End(day)); got != 23*time.Hour {
		t.Errorf("a day of 23 hours has %s of business", got)
	}
}

// A model that checks the clock of every minute, over zones and times with clock changes, agrees
// with the computed result.
func TestCalendarAgainstEveryMinute(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c, from := draw(t, rt)
		to := from.Add(time.Duration(rapid.IntRange(0, 6*24*60).Draw(rt, "minutes")) * time.Minute)
		var open time.Duration
		for minute := from; minute.Before(to); minute = minute.Add(time.Minute) {
			local := minute.In(c.Zone)
			clock := calendar.Clock(local.Hour()*60 + local.Minute())
			year, month, day := local.Date()
			if c.IsBusiness(calendar.Date{Year: year, Month: month, Day: day}) &&
				clock >= c.Hours.Opens && clock < c.Hours.Closes {
				open += time.Minute
			}
		}
		got := c.Between(from, to)
		// Where the clocks are put back across opening or closing, the model counts the repeated time
		// twice, or as closed: the error is at most the amount put back.
		if off := (got - open).Abs(); off > putBack(c.Zone, from, to) {
			rt.Fatalf("%s, %s: from %s to %s: %s, minute by minute %s",
				c.Zone, c.Hours, from, to, got, open)
		}
	})
}

// putBack returns by how much the zone's clocks are put back near the times.
func putBack(zone *time.Location, from, to time.Time) time.Duration {
	var sum time.Duration
	_, before := from.Add(-26 * time.Hour).In(zone).Zone()
	for t := from.Add(-26 * time.Hour); t.Before(to.Add(26 * time.Hour)); t = t.Add(time.Hour) {
		_, after := t.In(zone).Zone()
		sum += max(0, time.Duration(before-after)*time.Second)
		before = after
	}
	return sum
}

func TestCalendarLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c, instant := draw(t, rt)
		day := c.DayOf(instant)
		if !c.IsBusiness(day) || instant.Before(c.Start(day)) || !instant.Before(c.End(day)) {
			rt.Fatalf("%s is in %s, from %s to %s", instant, day, c.Start(day), c.End(day))
		}
		if next := c.Next(day); !c.Start(next).Equal(c.End(day)) || next.Compare(day) <= 0 {
			rt.Fatalf("after %s, which ends at %s, comes %s, which begins at %s",
				day, c.End(day), next, c.Start(next))
		}
		if cutoff := c.NextCutoff(instant); !cutoff.After(instant) ||
			c.NextCutoff(cutoff.Add(-1)) != cutoff || c.NextCutoff(instant.Add(-1)).After(cutoff) {
			rt.Fatalf("the cut-off after %s is %s", instant, cutoff)
		}
		daily := time.Duration(c.Hours.Closes-c.Hours.Opens) * time.Minute
		open := time.Duration(rapid.Int64Range(1, int64(20*daily)).Draw(rt, "open"))
		if due := c.Add(instant, open); c.Between(instant, due) != open ||
			c.Between(instant, due.Add(-1)) != open-1 {
			rt.Fatalf("%s open from %s is %s", open, instant, due)
		}
		if since := c.Ago(instant, open); c.Between(since, instant) != open ||
			c.Between(since.Add(1), instant) != open-1 {
			rt.Fatalf("%s open until %s is %s", open, instant, since)
		}
		middle := instant.Add(open / 2)
		if end := instant.Add(open); c.Between(instant, middle)+c.Between(middle, end) !=
			c.Between(instant, end) {
			rt.Fatalf("from %s over %s to %s does not add up", instant, middle, end)
		}
	})
}

// draw generates a calendar, and an instant near a possible clock change.
func draw(t *testing.T, rt *rapid.T) (calendar.Calendar, time.Time) {
	opens := rapid.IntRange(0, 24*60-1).Draw(rt, "opens")
	closes := rapid.IntRange(opens+1, 24*60).Draw(rt, "closes")
	c := calendar.Calendar{
		Zone:   in(t, rapid.SampledFrom(zones).Draw(rt, "zone")),
		Hours:  calendar.Hours{Opens: calendar.Clock(opens), Closes: calendar.Clock(closes)},
		Cutoff: calendar.Clock(rapid.IntRange(opens, closes).Draw(rt, "cutoff")),
	}
	year := rapid.SampledFrom([]int{2010, 2011, 2025, 2026, 2040}).Draw(rt, "year")
	instant := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).
		Add(time.Duration(rapid.IntRange(0, 366*24*60).Draw(rt, "minute")) * time.Minute)
	if _, change := instant.In(c.Zone).ZoneBounds(); !change.IsZero() &&
		rapid.Bool().Draw(rt, "near a change") {
		off := time.Duration(rapid.IntRange(-3000, 3000).Draw(rt, "off")) * time.Minute
		instant = change.Add(off).Truncate(time.Minute)
	}
	for _, days := range rapid.SliceOfNDistinct(rapid.IntRange(-10, 10), 0, 5, rapid.ID).
		Draw(rt, "holidays") {
		c.Holidays = append(c.Holidays, dayNear(instant, days))
	}
	slices.SortFunc(c.Holidays, calendar.Date.Compare)
	return c, instant
}

func dayNear(instant time.Time, days int) calendar.Date {
	year, month, day := instant.AddDate(0, 0, days).Date()
	return calendar.Date{Year: year, Month: month, Day: day}
}

func TestReadHolidays(t *testing.T) {
	t.Parallel()
	days, err := calendar.ReadHolidays(strings.NewReader(
		"# kept by the bank\n\n2026-12-25 # Christmas\r\n  2026-11-26\n2026-12-25\n"))
	if err != nil || len(days) != 2 || days[0].String() != "2026-11-26" ||
		days[1].String() != "2026-12-25" {
		t.Errorf("read %v, %v", days, err)
	}
	for text, want := range map[string]string{
		"2026-01-01\n2026-02-30": `line 2: "2026-02-30" is no day; write it as 2026-12-25`,
		"12/25/2026":             `line 1: "12/25/2026" is no day`,
		"2026-01-01 2026-01-02":  `line 1: "2026-01-01 2026-01-02" is no day`,
		strings.Repeat("x", 1e5): "reading the holidays: ",
	} {
		if _, err := calendar.ReadHolidays(strings.NewReader(text)); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.30q: %v", text, err)
		}
	}
}

// The published holidays cover two years, and the lender works on none of them.
func TestPublishedHolidays(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../../docs/deploy/holidays.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	days, err := calendar.ReadHolidays(file)
	if err != nil || len(days) != 22 || days[0].String() != "2026-01-01" {
		t.Fatalf("read %v, %v", days, err)
	}
	c := calendar.Calendar{Holidays: days}
	for _, day := range days {
		if c.IsBusiness(day) {
			t.Errorf("%s is a business day", day)
		}
	}
}

func TestParseHours(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"09:00-17:00": "09:00-17:00", "00:00 - 24:00": "00:00-24:00", "8:00-17:00": "",
		"17:00-09:00": "", "09:00-09:00": "", "09:00": "", "09:00-24:01": "", "": "",
	} {
		hours, err := calendar.ParseHours(text)
		if (err == nil) != (want != "") || err == nil && hours.String() != want {
			t.Errorf("%q: %s, %v", text, hours, err)
		}
	}
}

func FuzzReadHolidays(f *testing.F) {
	for _, seed := range []string{
		"", "# none", "2026-12-25", "2026-12-25\r\n2026-01-01 # x", "0000-01-01", "9999-12-31",
		"2026-02-29", "2024-02-29", "\ufeff2026-01-01", "2026-01-01\x00", "2026-1-1", "\n\n\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		days, err := calendar.ReadHolidays(strings.NewReader(text))
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x00") {
				t.Fatalf("%q: the error is not one plain line: %q", text, err)
			}
			return
		}
		lines := make([]string, 0, len(days))
		for _, day := range days {
			if !strings.Contains(text, day.String()) {
				t.Fatalf("%q holds no %s", text, day)
			}
			lines = append(lines, day.String())
		}
		if !slices.IsSorted(lines) || len(slices.Compact(lines)) != len(days) {
			t.Fatalf("%q reads as %v", text, days)
		}
		again, err := calendar.ReadHolidays(strings.NewReader(strings.Join(lines, "\n")))
		if err != nil || !slices.Equal(again, days) {
			t.Fatalf("%q reads as %v and then %v, %v", text, days, again, err)
		}
		// However many days are holidays, the next business day is found.
		c := calendar.Calendar{Holidays: days, Hours: calendar.Hours{Opens: 0, Closes: 1}}
		if len(days) > 0 && !c.IsBusiness(c.Next(days[0])) {
			t.Fatalf("after %s comes %s", days[0], c.Next(days[0]))
		}
	})
}
