package subscription

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"drawbridge/internal/webhook/sender"
)

// Setting names a setting that can differ between versions. No others exist.
type Setting string

// The settings, in the order in which differences are listed.
const (
	SettingURL       Setting = "url"
	SettingAuth      Setting = "auth"
	SettingSecret    Setting = "secret"
	SettingEvents    Setting = "events"
	SettingMerchants Setting = "merchants"
	SettingHeaders   Setting = "headers"
	SettingRate      Setting = "rate"
	SettingHealth    Setting = "health_rules"
	SettingName      Setting = "name"
	SettingRetry     Setting = "retry"
	SettingStandard  Setting = "standard"
	SettingState     Setting = "state"
)

// SettingChange is one difference. For events, merchants and headers there is one for
// each entry, with Before empty if it was added and After empty if it was removed.
type SettingChange struct {
	Setting Setting
	// Name is the header's name, else empty.
	Name string
	// Before and After are empty for a secret. Secret header values are masked: a
	// changed one may look the same on both sides.
	Before, After string
	// Masked means that the values are hidden.
	Masked bool
}

// VersionDiff holds the differences between two versions of a subscription.
type VersionDiff struct {
	From, To int
	Changes  []SettingChange
}

// Settings names the settings that differ, each once.
func (d VersionDiff) Settings() []string {
	var names []string
	for _, change := range d.Changes {
		if !slices.Contains(names, string(change.Setting)) {
			names = append(names, string(change.Setting))
		}
	}
	return names
}

// compareVersions compares two of the versions, which must be newest first.
func compareVersions(versions []Version, from, to int) (VersionDiff, error) {
	before, err := pick(versions, from)
	if err != nil {
		return VersionDiff{}, err
	}
	after, err := pick(versions, to)
	if err != nil {
		return VersionDiff{}, err
	}
	diff := VersionDiff{From: from, To: to}
	diff.value(SettingURL, before.URL, after.URL)
	diff.value(SettingAuth, string(before.Auth), string(after.Auth))
	low, high := min(from, to), max(from, to)
	if slices.ContainsFunc(versions, func(v Version) bool {
		return v.Number > low && v.Number <= high && v.rotated()
	}) {
		diff.Changes = append(diff.Changes, SettingChange{Setting: SettingSecret, Masked: true})
	}
	diff.entries(SettingEvents, before.Events, after.Events)
	diff.entries(SettingMerchants, merchantTexts(before.Merchants), merchantTexts(after.Merchants))
	if before.HeadersUnknown || after.HeadersUnknown {
		diff.sealed(before, after)
	} else {
		diff.headers(before.Headers, after.Headers)
	}
	diff.value(SettingRate, rateText(before.Rate), rateText(after.Rate))
	if before.Watch != nil && after.Watch != nil {
		diff.value(SettingHealth, before.Watch.words(), after.Watch.words())
	}
	if before.Options != nil && after.Options != nil {
		diff.value(SettingName, before.Options.Name, after.Options.Name)
		diff.value(SettingRetry, before.Options.Retry.String(), after.Options.Retry.String())
		diff.value(SettingStandard, strconv.FormatBool(before.Options.Standard),
			strconv.FormatBool(after.Options.Standard))
	}
	if before.State != "" && after.State != "" {
		diff.value(SettingState, string(before.State), string(after.State))
	}
	return diff, nil
}

// merchantTexts returns "all" for an empty list, which means all merchants.
func merchantTexts(uids []uuid.UUID) []string {
	if len(uids) == 0 {
		return []string{"all"}
	}
	texts := make([]string, len(uids))
	for i, uid := range uids {
		texts[i] = uid.String()
	}
	return texts
}

// rateText is empty if there is no limit.
func rateText(rate int) string {
	if rate == 0 {
		return ""
	}
	return strconv.Itoa(rate) + " per second"
}

func (d *VersionDiff) value(setting Setting, before, after string) {
	if before != after {
		d.Changes = append(d.Changes, SettingChange{Setting: setting, Before: before, After: after})
	}
}

// entries adds a difference for each entry of a set that was removed or added.
func (d *VersionDiff) entries(setting Setting, before, after []string) {
	for _, entry := range before {
		if !slices.Contains(after, entry) {
			d.value(setting, entry, "")
		}
	}
	for _, entry := range after {
		if !slices.Contains(before, entry) {
			d.value(setting, "", entry)
		}
	}
}

func (d *VersionDiff) headers(before, after []sender.Header) {
	for _, header := range before {
		now, found := findHeader(after, header.Name)
		switch {
		case !found:
			d.header(header, sender.Header{})
		case now.Value != header.Value, now.Plain != header.Plain:
			d.header(header, now)
		}
	}
	for _, header := range after {
		if _, found := findHeader(before, header.Name); !found {
			d.header(sender.Header{}, header)
		}
	}
}

// sealed adds a difference if headers that cannot be decrypted were stored anew.
func (d *VersionDiff) sealed(before, after Version) {
	if before.sealed == after.sealed {
		return
	}
	shown := func(v Version) string {
		if v.sealed == "" {
			return ""
		}
		return sender.Masked
	}
	d.Changes = append(d.Changes, SettingChange{
		Setting: SettingHeaders, Before: shown(before), After: shown(after), Masked: true,
	})
}

// header adds a difference; the zero header stands for none.
func (d *VersionDiff) header(before, after sender.Header) {
	change := SettingChange{
		Setting: SettingHeaders, Name: cmp.Or(before.Name, after.Name),
		Before: shown(before), After: shown(after),
	}
	change.Masked = sender.IsMasked(change.Before) || sender.IsMasked(change.After)
	d.Changes = append(d.Changes, change)
}

// shown is a header's value as it may be displayed; an empty value is distinguished from
// a missing header.
func shown(header sender.Header) string {
	switch {
	case header.Name == "":
		return ""
	case header.Value == "":
		return "(empty)"
	}
	return sender.MaskValue(header)
}

func findHeader(headers []sender.Header, name string) (sender.Header, bool) {
	at := slices.IndexFunc(headers, func(h sender.Header) bool { return h.Name == name })
	if at < 0 {
		return sender.Header{}, false
	}
	return headers[at], true
}
