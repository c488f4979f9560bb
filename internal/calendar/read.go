package calendar

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Date is a calendar day, without a time zone.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// ParseDate parses a day such as 2026-12-25.
func ParseDate(text string) (Date, error) {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return Date{}, fmt.Errorf("%q is no day; write it as 2026-12-25", text)
	}
	return dateOf(day), nil
}

// String formats the day as 2026-12-25.
func (d Date) String() string { return d.midnight().Format(time.DateOnly) }

// Compare orders days by time.
func (d Date) Compare(other Date) int {
	return cmp.Or(d.Year-other.Year, int(d.Month-other.Month), d.Day-other.Day)
}

func dateOf(t time.Time) Date {
	year, month, day := t.Date()
	return Date{year, month, day}
}

func (d Date) midnight() time.Time {
	return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC)
}

func (d Date) add(days int) Date { return dateOf(d.midnight().AddDate(0, 0, days)) }

// ReadHolidays reads one day per line, such as 2026-12-25. Text after a # is a comment, and
// lines without a day are skipped. The days are returned in order, without duplicates.
func ReadHolidays(from io.Reader) ([]Date, error) {
	var days []Date
	lines := bufio.NewScanner(from)
	for number := 1; lines.Scan(); number++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		day, err := ParseDate(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		days = append(days, day)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the holidays: %w", err)
	}
	slices.SortFunc(days, Date.Compare)
	return slices.Compact(days), nil
}

// ParseClock parses a time of day such as 15:30, from 00:00 to 24:00.
func ParseClock(text string) (Clock, error) {
	if text == "24:00" {
		return 24 * 60, nil
	}
	t, err := time.Parse("15:04", text)
	if err != nil || len(text) != len("15:04") {
		return 0, fmt.Errorf("%q is no time of day; write it as 15:30", text)
	}
	return Clock(t.Hour()*60 + t.Minute()), nil
}

// ParseHours parses opening hours such as 09:00-17:00.
func ParseHours(text string) (Hours, error) {
	from, to, found := strings.Cut(text, "-")
	if !found {
		return Hours{}, fmt.Errorf("%q are no opening hours; write them as 09:00-17:00", text)
	}
	opens, err := ParseClock(strings.TrimSpace(from))
	if err != nil {
		return Hours{}, err
	}
	closes, err := ParseClock(strings.TrimSpace(to))
	if err != nil {
		return Hours{}, err
	}
	if opens >= closes {
		return Hours{}, fmt.Errorf("%q close before they open", text)
	}
	return Hours{Opens: opens, Closes: closes}, nil
}
