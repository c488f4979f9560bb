// Package calendar computes the lender's business days and hours. It depends only on its inputs,
// and is exact on every day: also on days with 23 or 25 hours, and on days that a zone skipped
// or began at one o'clock.
package calendar

import (
	"fmt"
	"slices"
	"time"
)

// Calendar defines when the lender works.
//
// Each instant belongs to exactly one business day: that of its date or, on weekends and
// holidays, the next one. So business days follow one another without a gap, and Monday's begins
// at the start of Saturday.
type Calendar struct {
	// Zone is the time zone of dates and hours; nil is UTC.
	Zone *time.Location
	// Holidays are days without business besides Saturdays and Sundays, in order.
	Holidays []Date
	// Hours are the hours of every business day, and must not be empty.
	Hours Hours
	// Cutoff is the time, within the hours, by which the day's transfers must be ordered.
	Cutoff Clock
}

// Hours are the time from opening to closing.
type Hours struct{ Opens, Closes Clock }

// Clock is a time of day, in minutes since midnight; 24:00 is the end of the day.
type Clock int

// String formats the time as 09:30.
func (c Clock) String() string { return fmt.Sprintf("%02d:%02d", c/60, c%60) }

// String formats the hours as 09:00-17:00.
func (h Hours) String() string { return h.Opens.String() + "-" + h.Closes.String() }

// IsBusiness reports whether the lender works on the day.
func (c Calendar) IsBusiness(day Date) bool {
	switch day.midnight().Weekday() {
	case time.Saturday, time.Sunday:
		return false
	default:
		_, holiday := slices.BinarySearchFunc(c.Holidays, day, Date.Compare)
		return !holiday
	}
}

// DayOf returns the business day that the instant belongs to.
func (c Calendar) DayOf(instant time.Time) Date { return c.businessFrom(c.dateOf(instant)) }

// Next returns the first business day after the day.
func (c Calendar) Next(day Date) Date { return c.businessFrom(day.add(1)) }

// Start returns when the business day begins: at the midnight that ends the previous one.
func (c Calendar) Start(day Date) time.Time {
	before := day.add(-1)
	for !c.IsBusiness(before) {
		before = before.add(-1)
	}
	return c.at(before.add(1), 0)
}

// End returns when the business day ends, which is when the next one begins.
func (c Calendar) End(day Date) time.Time { return c.at(day.add(1), 0) }

// NextCutoff returns the first cut-off after the instant: transfers ordered by then leave the
// same day.
func (c Calendar) NextCutoff(instant time.Time) time.Time {
	for day := c.DayOf(instant); ; day = c.Next(day) {
		if cutoff := c.at(day, c.Cutoff); cutoff.After(instant) {
			return cutoff
		}
	}
}

// Between returns how long the lender was open between two instants, and zero unless the second
// is later.
func (c Calendar) Between(from, to time.Time) time.Duration {
	var open time.Duration
	for day := c.DayOf(from); ; day = c.Next(day) {
		opens, closes := c.hoursOf(day)
		if !opens.Before(to) {
			return open
		}
		open += max(0, earlier(closes, to).Sub(later(opens, from)))
	}
}

// Add returns the first instant at which the lender has been open for the duration since from.
func (c Calendar) Add(from time.Time, open time.Duration) time.Time {
	if open <= 0 {
		return from
	}
	for day := c.DayOf(from); ; day = c.Next(day) {
		opens, closes := c.hoursOf(day)
		opens = later(opens, from)
		if left := closes.Sub(opens); left >= open {
			return opens.Add(open)
		} else if left > 0 {
			open -= left
		}
	}
}

// Ago returns the last instant since which the lender has been open for the duration until to.
func (c Calendar) Ago(to time.Time, open time.Duration) time.Time {
	if open <= 0 {
		return to
	}
	for day := c.dateOf(to); ; day = day.add(-1) {
		if !c.IsBusiness(day) {
			continue
		}
		opens, closes := c.hoursOf(day)
		closes = earlier(closes, to)
		if left := closes.Sub(opens); left >= open {
			return closes.Add(-open)
		} else if left > 0 {
			open -= left
		}
	}
}

// businessFrom returns the day itself if the lender works on it, else the next business day.
func (c Calendar) businessFrom(day Date) Date {
	for !c.IsBusiness(day) {
		day = day.add(1)
	}
	return day
}

func (c Calendar) hoursOf(day Date) (opens, closes time.Time) {
	return c.at(day, c.Hours.Opens), c.at(day, c.Hours.Closes)
}

// dateOf returns the date that the instant belongs to, with dates bounded by at: where clocks
// were put back over midnight, the repeated part of the evening belongs to the new day.
func (c Calendar) dateOf(instant time.Time) Date {
	day := dateOf(instant.In(c.zone()))
	for !instant.Before(c.at(day.add(1), 0)) {
		day = day.add(1)
	}
	return day
}

// at returns the first instant at which the zone's clocks show the time of day or later: of a time
// that they skip the instant of the jump, and of one that occurs twice the first occurrence.
func (c Calendar) at(day Date, clock Clock) time.Time {
	shown := day.midnight().Add(time.Duration(clock) * time.Minute)
	// No zone is 26 hours off, so the result is after this instant.
	here := shown.Add(-26 * time.Hour).In(c.zone())
	for {
		_, offset := here.Zone()
		_, end := here.ZoneBounds()
		if !end.IsZero() && !end.After(here) {
			// The library returns this on the last day of leap years of the far future.
			end = here.Add(time.Hour)
		}
		instant := later(shown.Add(-time.Duration(offset)*time.Second), here)
		if end.IsZero() || instant.Before(end) {
			return instant.In(c.zone())
		}
		here = end
	}
}

func (c Calendar) zone() *time.Location {
	if c.Zone == nil {
		return time.UTC
	}
	return c.Zone
}

func earlier(a, b time.Time) time.Time {
	return slices.MinFunc([]time.Time{a, b}, time.Time.Compare)
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
