package health

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// Split is the property by which failed attempts are grouped.
type Split string

// The splits.
const (
	ByEndpoint Split = "endpoint"
	ByError    Split = "error"
)

// keys are the SQL expressions that the attempts of one part have in common.
var keys = map[Split]string{
	ByEndpoint: `subscription_uid::text`,
	ByError:    `error_class || ' ' || http_status`,
}

// FailurePart is a part of the failed attempts: those to one endpoint, those with one
// error, or all others, which have neither set.
type FailurePart struct {
	Endpoint subscription.Endpoint
	Class    sender.ErrorClass
	Status   int
	// Steps counts the attempts in each time step, oldest first.
	Steps []int
}

// partsShown is how many parts are shown; the rest form one more part.
const partsShown = 4

// Failures returns the attempts that failed from since to just before until, in steps of
// whole hours, split by by; the most frequent part comes first, all others last.
func (s *Service) Failures(
	ctx context.Context, since, until time.Time, step time.Duration, by Split,
) ([]FailurePart, error) {
	since = since.UTC().Truncate(step)
	steps := int((until.Sub(since) + step - 1) / step)
	var rows []struct {
		Key      string `db:"key"`
		Step     int    `db:"step"`
		Attempts int    `db:"attempts"`
	}
	err := s.DB.SelectContext(ctx, &rows, `
		WITH counted AS (
			SELECT `+keys[by]+` AS key, sum(attempts) AS attempts,
			       floor(extract(epoch FROM hour - $1::timestamptz) / $3)::integer AS step
			  FROM subscription_errors
			 WHERE hour >= $1
			   AND hour < $2
			   AND attempts > 0
			 GROUP BY 1, 3
		), ranked AS (
			SELECT key, row_number() OVER (ORDER BY sum(attempts) DESC, key) AS place
			  FROM counted
			 GROUP BY key
		)
		SELECT CASE WHEN place <= $4 THEN key ELSE '' END AS key, step, sum(attempts) AS attempts
		  FROM counted
		  JOIN ranked USING (key)
		 GROUP BY least(place, $4 + 1), 1, step
		 ORDER BY least(place, $4 + 1)`, since, until.UTC(), step.Seconds(), partsShown)
	if err != nil {
		return nil, fmt.Errorf("splitting the failures by %s: %w", by, err)
	}
	var parts []FailurePart
	var named []string
	for _, row := range rows {
		if len(named) == 0 || named[len(named)-1] != row.Key {
			named = append(named, row.Key)
			parts = append(parts, FailurePart{Steps: make([]int, steps)})
		}
		parts[len(parts)-1].Steps[row.Step] = row.Attempts
	}
	return parts, s.nameParts(ctx, by, named, parts)
}

// nameParts fills in the endpoint or error of each part from its key.
func (s *Service) nameParts(
	ctx context.Context, by Split, named []string, parts []FailurePart,
) error {
	if by == ByError {
		for i, key := range named {
			class, status, _ := strings.Cut(key, " ")
			parts[i].Class = sender.ErrorClass(class)
			parts[i].Status, _ = strconv.Atoi(status) // written by our own statement
		}
		return nil
	}
	var endpoints []struct {
		UID uuid.UUID `db:"subscription_uid"`
		subscription.Endpoint
	}
	err := s.DB.SelectContext(ctx, &endpoints, `
		SELECT s.subscription_uid, `+subscription.EndpointColumns+`
		  FROM subscriptions s
		 WHERE s.subscription_uid::text = ANY ($1)`, pq.Array(named))
	if err != nil {
		return fmt.Errorf("naming what fails: %w", err)
	}
	for i, key := range named {
		for _, one := range endpoints {
			if one.UID.String() == key {
				parts[i].Endpoint = one.Endpoint
			}
		}
	}
	return nil
}
