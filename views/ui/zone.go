package ui

import (
	"context"
	"time"
)

// Zone is the time zone that a reader sees times in.
type Zone struct {
	// Name is the zone's in the IANA database, empty for UTC.
	Name string
	// Auto tells that it is the browser's own, which script keeps up to date.
	Auto bool
}

// zoneKey is where WithZone leaves the zone.
type zoneKey struct{}

// WithZone lets everything that is rendered under the context show times in a
// zone; without it they are in UTC.
func WithZone(ctx context.Context, zone *time.Location) context.Context {
	return context.WithValue(ctx, zoneKey{}, zone)
}

// ZoneOf returns the zone that WithZone left, else UTC.
func ZoneOf(ctx context.Context) *time.Location {
	if zone, ok := ctx.Value(zoneKey{}).(*time.Location); ok {
		return zone
	}
	return time.UTC
}

// Absolute writes a time in the reader's zone, to the second, with the zone.
func Absolute(ctx context.Context, t time.Time) string {
	return t.In(ZoneOf(ctx)).Format("2006-01-02 15:04:05 MST")
}

// absoluteExact is absolute to the millisecond.
func absoluteExact(ctx context.Context, t time.Time) string {
	return t.In(ZoneOf(ctx)).Format("2006-01-02 15:04:05.000 MST")
}

// universal writes a time in UTC, as the API and the logs do.
func universal(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") }

// machineSecond is machine to the second, which is as exact as what is shown.
func machineSecond(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// machine is the datetime attribute of a time, to the microsecond.
func machine(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00") }

// zones are those to choose from, west to east.
var zones = []string{
	"Pacific/Honolulu", "America/Anchorage", "America/Los_Angeles", "America/Phoenix",
	"America/Denver", "America/Chicago", "America/Mexico_City", "America/New_York",
	"America/Toronto", "America/Bogota", "America/Puerto_Rico", "America/Sao_Paulo",
	"Europe/London", "Europe/Berlin", "Europe/Madrid", "Europe/Paris", "Europe/Warsaw",
	"Africa/Lagos", "Africa/Johannesburg", "Asia/Dubai", "Asia/Kolkata", "Asia/Manila",
	"Asia/Singapore", "Asia/Tokyo", "Australia/Sydney",
}

// options are the choices of the menu; the browser's own needs script.
func (z Zone) options() []Option {
	auto := "Browser's own"
	if z.Auto && z.Name != "" {
		auto += " (" + z.Name + ")"
	}
	found := []Option{{Value: "auto:" + z.Name, Label: auto}, {Value: "UTC", Label: "UTC"}}
	known := z.Auto || z.Name == "" || z.Name == "UTC"
	for _, name := range zones {
		found = append(found, Option{Value: name, Label: name})
		known = known || name == z.Name
	}
	if !known {
		found = append(found, Option{Value: z.Name, Label: z.Name})
	}
	return found
}

// value is the choice in force, among options.
func (z Zone) value() string {
	if z.Auto {
		return "auto:" + z.Name
	}
	if z.Name == "" {
		return "UTC"
	}
	return z.Name
}
