package ui

import (
	"context"
	"strings"

	"drawbridge/internal/lending"
)

// currencyKey is where WithCurrency leaves the currency.
type currencyKey struct{}

// WithCurrency lets everything that is rendered under the context name the currency of
// amounts by its ISO 4217 code; without it they are bare figures.
func WithCurrency(ctx context.Context, code string) context.Context {
	return context.WithValue(ctx, currencyKey{}, code)
}

// currencyOf returns the code that WithCurrency left, else none.
func currencyOf(ctx context.Context) string {
	code, _ := ctx.Value(currencyKey{}).(string)
	return code
}

// Amount writes money with its currency and its thousands grouped: USD 12,345.00.
func Amount(ctx context.Context, money lending.Money) string {
	return InCurrency(currencyOf(ctx), money)
}

// InCurrency is Amount where no context tells the currency.
func InCurrency(code string, money lending.Money) string {
	return If(code == "", Figure(money), code+"\u00a0"+Figure(money))
}

// AmountHint says below a field how an amount is typed, and in which currency.
func AmountHint(code string) string {
	return If(code == "", "For example 12500.00.", "In "+code+", for example 12500.00.")
}

// Figure writes money with its thousands grouped: 12,345.00.
func Figure(money lending.Money) string {
	whole, cents, _ := strings.Cut(money.String(), ".")
	sign := ""
	if digits, negative := strings.CutPrefix(whole, "-"); negative {
		sign, whole = "-", digits
	}
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	return sign + whole + "." + cents
}
