package ui

import (
	"context"
	"time"
)

// Zone is the time zone in which a reader sees times.
type Zone struct {
	// Name is the zone's name in the IANA database, empty for UTC.
	Name string
	// Auto means that it is the browser's zone, which the script keeps up to date.
	Auto bool
}

// zoneKey is the context key of the zone.
type zoneKey struct{}

// WithZone sets the zone of all times that are rendered with the context; without it they
// are in UTC.
func WithZone(ctx context.Context, zone *time.Location) context.Context {
	return context.WithValue(ctx, zoneKey{}, zone)
}

// ZoneOf returns the zone that WithZone set, otherwise UTC.
func ZoneOf(ctx context.Context) *time.Location {
	if zone, ok := ctx.Value(zoneKey{}).(*time.Location); ok {
		return zone
	}
	return time.UTC
}

// Absolute formats a time in the reader's zone, to the second, with the zone.
func Absolute(ctx context.Context, t time.Time) string {
	return t.In(ZoneOf(ctx)).Format("2006-01-02 15:04:05 MST")
}

// absoluteExact is Absolute to the millisecond.
func absoluteExact(ctx context.Context, t time.Time) string {
	return t.In(ZoneOf(ctx)).Format("2006-01-02 15:04:05.000 MST")
}

// universal formats a time in UTC, as the API and the logs do.
func universal(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") }

// machineSecond is machine to the second, for times that are shown to the second.
func machineSecond(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// machine is the datetime attribute of a time, to the microsecond.
func machine(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00") }

// zones are the zones to choose from, west to east.
var zones = []string{
	"Pacific/Honolulu", "America/Anchorage", "America/Los_Angeles", "America/Phoenix",
	"America/Denver", "America/Chicago", "America/Mexico_City", "America/New_York",
	"America/Toronto", "America/Bogota", "America/Puerto_Rico", "America/Sao_Paulo",
	"Europe/London", "Europe/Berlin", "Europe/Madrid", "Europe/Paris", "Europe/Warsaw",
	"Africa/Lagos", "Africa/Johannesburg", "Asia/Dubai", "Asia/Kolkata", "Asia/Manila",
	"Asia/Singapore", "Asia/Tokyo", "Australia/Sydney",
}

// options are the choices of the menu; the browser's own zone needs script.
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

// value is the selected choice among options.
func (z Zone) value() string {
	if z.Auto {
		return "auto:" + z.Name
	}
	if z.Name == "" {
		return "UTC"
	}
	return z.Name
}
