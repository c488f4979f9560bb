package lending

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shopspring/decimal"
)

// Why an amount was not understood. The texts follow the name of a field.
var (
	ErrMoneySyntax = errors.New("must be a decimal number without a sign, with up to 2 decimal " +
		"places and without commas, such as 24999.99")
	ErrMoneyRange = errors.New("must be at most 999999999999.99")
)

const (
	moneyPlaces        = 2
	moneyIntegerDigits = 12
)

// Money is an amount in the one currency of the service, exact to the cent.
// The zero value is 0.00. Its text form, in JSON too, has two decimals
// ("1234.50"); in the database it is a numeric(14,2).
type Money struct{ value decimal.Decimal }

// ParseMoney reads an amount such as "1234.5": ASCII digits, then at most one
// point with one or two decimals. It accepts neither sign, exponent nor blanks.
// Errors: ErrMoneySyntax, ErrMoneyRange.
func ParseMoney(text string) (Money, error) {
	value, err := parseDecimal(text, moneyIntegerDigits, moneyPlaces)
	switch {
	case errors.Is(err, errTooLarge):
		return Money{}, ErrMoneyRange
	case err != nil:
		return Money{}, ErrMoneySyntax
	}
	return Money{value}, nil
}

// Cents returns n hundredths as an amount: Cents(123450) is 1234.50.
func Cents(n int64) Money { return Money{decimal.New(n, -moneyPlaces)} }

// Add returns m + other.
func (m Money) Add(other Money) Money { return Money{m.value.Add(other.value)} }

// Sub returns m - other, which may be negative.
func (m Money) Sub(other Money) Money { return Money{m.value.Sub(other.value)} }

// Portion returns percent of m, rounded half up to cents.
func (m Money) Portion(percent Percent) Money {
	return Money{m.value.Mul(percent.value).Shift(-2).Round(moneyPlaces)}
}

// Cmp returns -1, 0 or 1 as m is below, equal to or above other.
func (m Money) Cmp(other Money) int { return m.value.Cmp(other.value) }

// Equal reports whether both amounts are the same.
func (m Money) Equal(other Money) bool { return m.Cmp(other) == 0 }

// Less reports whether m is below other.
func (m Money) Less(other Money) bool { return m.Cmp(other) < 0 }

// IsZero reports whether m is 0.00.
func (m Money) IsZero() bool { return m.value.IsZero() }

// IsPositive reports whether m is above 0.00.
func (m Money) IsPositive() bool { return m.value.IsPositive() }

// IsNegative reports whether m is below 0.00.
func (m Money) IsNegative() bool { return m.value.IsNegative() }

// MinMoney returns the lesser of two amounts.
func MinMoney(a, b Money) Money { return slices.MinFunc([]Money{a, b}, Money.Cmp) }

// MaxMoney returns the greater of two amounts.
func MaxMoney(a, b Money) Money { return slices.MaxFunc([]Money{a, b}, Money.Cmp) }

// String returns the amount with two decimals, such as "1234.50".
func (m Money) String() string { return m.value.StringFixed(moneyPlaces) }

// MarshalText returns String; encoding/json makes a JSON string of it.
func (m Money) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads what ParseMoney reads. As encoding/json calls it for
// strings only, a JSON number is a type error that names its field.
func (m *Money) UnmarshalText(text []byte) error {
	parsed, err := ParseMoney(string(text))
	if err != nil {
		return err
	}
	*m = parsed
	return nil
}

// Scan reads a numeric column. NULL is an error: scan it into a *Money field.
func (m *Money) Scan(source any) error {
	value, err := scanDecimal(source)
	if err != nil {
		return fmt.Errorf("scanning an amount: %w", err)
	}
	if !value.Equal(value.Round(moneyPlaces)) {
		return fmt.Errorf("scanning an amount: %s has more than 2 decimals", value)
	}
	m.value = value
	return nil
}

// Value returns the amount for a numeric column.
func (m Money) Value() (driver.Value, error) { return m.String(), nil }

// Money parses the amount of a field and records an error if it cannot.
func (f *FieldErrors) Money(field, text string) Money {
	amount, err := ParseMoney(text)
	if err != nil {
		f.Add(field, "%q %s", field, err)
	}
	return amount
}

var (
	errNotDecimal = errors.New("not a decimal number")
	errTooLarge   = errors.New("too large")
)

// parseDecimal is the strict reader behind amounts and percentages. The decimal
// package's own reader takes signs and exponents, and "1e999999999" would make
// it build a number of a gigabyte.
func parseDecimal(text string, integerDigits, places int) (decimal.Decimal, error) {
	integer, fraction, hasPoint := strings.Cut(text, ".")
	wellFormed := isDigits(integer) && (!hasPoint || isDigits(fraction))
	if !wellFormed || len(fraction) > places {
		return decimal.Decimal{}, errNotDecimal
	}
	if len(strings.TrimLeft(integer, "0")) > integerDigits {
		return decimal.Decimal{}, errTooLarge
	}
	return decimal.NewFromString(text)
}

// isDigits reports whether s is one or more ASCII digits.
func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// scanDecimal reads what a driver returns for a numeric column. A float is
// refused: it would already have lost cents.
func scanDecimal(source any) (decimal.Decimal, error) {
	switch value := source.(type) {
	case []byte:
		return decimal.NewFromString(string(value))
	case string:
		return decimal.NewFromString(value)
	case int64:
		return decimal.NewFromInt(value), nil
	default:
		return decimal.Decimal{}, fmt.Errorf("unexpected type %T", source)
	}
}
