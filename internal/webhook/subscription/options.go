package subscription

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"strings"
	"time"

	"drawbridge/internal/lending"
)

const (
	// MaxName is the longest name of a subscription, in characters.
	MaxName = 100
	// The bounds of a delay before another attempt.
	minDelay, maxDelay = time.Second, 72 * time.Hour
)

// Options are the optional settings of a subscription.
type Options struct {
	// Name is its display name, empty for none.
	Name string `db:"name"`
	// Retry replaces the delays between attempts.
	Retry Delays `db:"retry"`
	// Standard adds the signature of Standard Webhooks to that of the specification's
	// section 5.
	Standard bool `db:"standard"`
}

// Label names a subscription for display: its name, if it has one, and its host and path.
func (o Options) Label(address string) string {
	where := address
	if parsed, err := url.Parse(address); err == nil && parsed.Host != "" {
		where = parsed.Host + strings.TrimSuffix(parsed.EscapedPath(), "/")
	}
	if o.Name == "" {
		return where
	}
	return o.Name + " (" + where + ")"
}

// Delays are the delays before the second and the third attempt; the zero value means the
// delays common to all subscriptions.
type Delays [2]time.Duration

// ParseDelays parses two delays such as "5m,2h". Error: VALIDATION_ERROR naming "retry".
func ParseDelays(text string) (Delays, error) {
	var delays Delays
	texts := strings.Split(text, ",")
	wrong := lending.Invalid("retry", `"retry" is %q; it must be two delays such as 5m,2h`, text)
	if len(texts) != len(delays) {
		return Delays{}, wrong
	}
	for i, text := range texts {
		delay, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil || delay <= 0 {
			return Delays{}, wrong
		}
		delays[i] = delay
	}
	return delays, nil
}

// IsSet reports whether the subscription has delays of its own.
func (d Delays) IsSet() bool { return d != Delays{} }

// Texts formats each in its shortest usual form, such as 5m; nil if none are set.
func (d Delays) Texts() []string {
	if !d.IsSet() {
		return nil
	}
	texts := make([]string, 0, len(d))
	for _, delay := range d {
		text := delay.String()
		if strings.HasSuffix(text, "m0s") {
			text = strings.TrimSuffix(text, "0s")
		}
		if strings.HasSuffix(text, "h0m") {
			text = strings.TrimSuffix(text, "0m")
		}
		texts = append(texts, text)
	}
	return texts
}

// String returns the form that ParseDelays parses, empty if none are set.
func (d Delays) String() string { return strings.Join(d.Texts(), ",") }

// Value returns the form stored in the column.
func (d Delays) Value() (driver.Value, error) { return d.String(), nil }

// Scan reads the column.
func (d *Delays) Scan(column any) error {
	var text sql.NullString
	if err := text.Scan(column); err != nil {
		return fmt.Errorf("reading delays: %w", err)
	}
	*d = Delays{}
	if text.String == "" {
		return nil
	}
	read, err := ParseDelays(text.String)
	if err != nil {
		return fmt.Errorf("reading delays: %w", err)
	}
	*d = read
	return nil
}
