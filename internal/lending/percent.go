package lending

import (
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/shopspring/decimal"
)

// Why a percentage was not understood. The texts follow the name of a field.
var (
	ErrPercentSyntax = errors.New("must be a percentage with up to 4 decimal places, such as 3.75")
	ErrPercentRange  = errors.New("must be at most 100")
)

const (
	percentPlaces        = 4
	percentIntegerDigits = 3
)

var wholePercent = decimal.NewFromInt(100)

// Percent is a percentage from 0 to 100 with up to four decimals: a share of a
// schedule, an annual interest rate, a merchant fee. The zero value is 0. Its
// text form, in JSON too, has no trailing zeros ("3.75", "40").
type Percent struct{ value decimal.Decimal }

// ParsePercent reads a percentage such as "33.33", without sign or percent sign.
// Errors: ErrPercentSyntax, ErrPercentRange.
func ParsePercent(text string) (Percent, error) {
	value, err := parseDecimal(text, percentIntegerDigits, percentPlaces)
	switch {
	case errors.Is(err, errTooLarge), err == nil && value.GreaterThan(wholePercent):
		return Percent{}, ErrPercentRange
	case err != nil:
		return Percent{}, ErrPercentSyntax
	}
	return Percent{value}, nil
}

// Equal reports whether both percentages are the same.
func (p Percent) Equal(other Percent) bool { return p.value.Equal(other.value) }

// IsZero reports whether p is 0.
func (p Percent) IsZero() bool { return p.value.IsZero() }

// String returns the percentage without trailing zeros, such as "3.75".
func (p Percent) String() string { return p.value.String() }

// MarshalText returns String; encoding/json makes a JSON string of it.
func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what ParsePercent reads.
func (p *Percent) UnmarshalText(text []byte) error {
	parsed, err := ParsePercent(string(text))
	if err != nil {
		return err
	}
	*p = parsed
	return nil
}

// Scan reads a numeric column. NULL is an error: scan it into a *Percent field.
func (p *Percent) Scan(source any) error {
	value, err := scanDecimal(source)
	if err != nil {
		return fmt.Errorf("scanning a percentage: %w", err)
	}
	p.value = value
	return nil
}

// Value returns the percentage for a numeric column.
func (p Percent) Value() (driver.Value, error) { return p.String(), nil }

// Percent parses the percentage of a field and records an error if it cannot.
func (f *FieldErrors) Percent(field, text string) Percent {
	percent, err := ParsePercent(text)
	if err != nil {
		f.Add(field, "%q %s", field, err)
	}
	return percent
}
