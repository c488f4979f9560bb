package lending

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/shopspring/decimal"
)

// MaxStages bounds the stages of a schedule.
const MaxStages = 50

// Why a schedule was not understood. The texts follow the name of a field.
var (
	ErrScheduleSyntax = errors.New(
		"must be percentages above 0 separated by commas, such as 40,40,20")
	ErrScheduleLength = fmt.Errorf("must have at most %d stages", MaxStages)
	ErrScheduleSum    = errors.New("must add up to exactly 100")
)

// Schedule is the shares of a loan that its stages pay out, in order. They add
// up to 100. Its text form, in the database too, is "40,40,20"; in JSON it is a
// list of strings.
type Schedule []Percent

// ParseSchedule reads a schedule such as "33.33, 33.33, 33.34".
// Errors: ErrScheduleSyntax, ErrScheduleLength, ErrScheduleSum.
func ParseSchedule(text string) (Schedule, error) {
	// One more part than allowed is enough to know that there are too many.
	parts := strings.SplitN(text, ",", MaxStages+1)
	if len(parts) > MaxStages {
		return nil, ErrScheduleLength
	}
	schedule := make(Schedule, len(parts))
	var sum decimal.Decimal
	for i, part := range parts {
		percent, err := ParsePercent(strings.TrimSpace(part))
		if err != nil || percent.IsZero() {
			return nil, ErrScheduleSyntax
		}
		schedule[i] = percent
		sum = sum.Add(percent.value)
	}
	if !sum.Equal(wholePercent) {
		return nil, ErrScheduleSum
	}
	return schedule, nil
}

// Amounts splits total over the stages, each rounded half up to cents, the last
// taking the remainder. The amounts add up to total. No stage takes more than
// is left, which matters only where rounding up exceeds a tiny total.
func (s Schedule) Amounts(total Money) []Money {
	amounts := make([]Money, len(s))
	left := total
	for i, percent := range s {
		amounts[i] = left
		if i < len(s)-1 {
			amounts[i] = MinMoney(total.Portion(percent), left)
		}
		left = left.Sub(amounts[i])
	}
	return amounts
}

// Stages returns the stages of a loan of the amount, numbered from 1.
func (s Schedule) Stages(amount Money) []Stage {
	stages := make([]Stage, len(s))
	for i, scheduled := range s.Amounts(amount) {
		stages[i] = Stage{Number: i + 1, Percent: s[i], Scheduled: scheduled}
	}
	return stages
}

// String returns the shares separated by commas.
func (s Schedule) String() string {
	parts := make([]string, len(s))
	for i, percent := range s {
		parts[i] = percent.String()
	}
	return strings.Join(parts, ",")
}

// Scan reads a text column.
func (s *Schedule) Scan(source any) error {
	var text string
	switch value := source.(type) {
	case []byte:
		text = string(value)
	case string:
		text = value
	default:
		return fmt.Errorf("scanning a schedule: unexpected type %T", source)
	}
	schedule, err := ParseSchedule(text)
	if err != nil {
		return fmt.Errorf("scanning a schedule: %q %w", text, err)
	}
	*s = schedule
	return nil
}

// Value returns the schedule for a text column.
func (s Schedule) Value() (driver.Value, error) { return s.String(), nil }
