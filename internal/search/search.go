// Package search finds what somebody pasted or types: ids of every kind, references, e-mail
// addresses, names and endpoints. Big tables are searched for whole values and prefixes only,
// which indexes serve.
package search

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// MaxLength bounds the searched text, in bytes; no value that could match is longer.
const MaxLength = 320

// perKind is the maximum number of hits of one kind.
const perKind = 8

// Kind is the kind of a hit.
type Kind string

// The kinds, in the order of the results.
const (
	Application  Kind = "application"
	Disbursement Kind = "disbursement"
	Delivery     Kind = "delivery"
	Event        Kind = "event"
	Email        Kind = "email"
	Subscription Kind = "subscription"
	Partner      Kind = "partner"
	Merchant     Kind = "merchant"
	Client       Kind = "client"
	Product      Kind = "product"
	Request      Kind = "request"
	Bulk         Kind = "bulk"
	Certificate  Kind = "certificate"
	Task         Kind = "task"
	Alert        Kind = "alert"
	System       Kind = "system"
	// Offered is only for choosing, never found: a product that applications may request.
	Offered Kind = "offered-product"
)

// Hit is one search result.
type Hit struct {
	Kind Kind `db:"kind"`
	// ID identifies the page of the hit, or the row of a product. For a disbursement, a certificate
	// or a task it is the application's.
	ID string `db:"id"`
	// Title names the hit, Detail distinguishes it from others with the same title.
	Title  string `db:"title"`
	Detail string `db:"detail"`
	// Part is the number of a disbursement, or the id of another part of an application.
	Part string `db:"part"`
}

// Service searches one database.
type Service struct {
	DB *postgres.DB
}

// Find returns what the text may name, grouped by kind, at most a few of each. An empty text
// matches nothing. Error: VALIDATION_ERROR for a text that cannot name anything.
func (s *Service) Find(ctx context.Context, text string) ([]Hit, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	if len(text) > MaxLength || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, lending.Invalid("q",
			`"q" must be text of at most %d bytes in UTF-8`, MaxLength)
	}
	statement, args := query(text)
	var hits []Hit
	if err := s.DB.SelectContext(ctx, &hits, statement, args...); err != nil {
		return nil, fmt.Errorf("searching: %w", err)
	}
	return hits, nil
}

// subjects are the prefixes of the subjects of events.
var subjects = []string{"application", "disbursement", "task"}

// query renders the lookups that can match the text, as one statement.
func query(text string) (string, []any) {
	// An event's subject names its object, such as disbursement/1471. Any other text with a slash,
	// such as a partner's reference, is searched for as it is.
	named := text
	if kind, id, found := strings.Cut(text, "/"); found && slices.Contains(subjects, kind) {
		named = id
	}
	args := []any{text}
	bind := func(value any) string {
		args = append(args, value)
		return "$" + strconv.Itoa(len(args))
	}
	var parts []string
	if uid, err := uuid.Parse(named); err == nil {
		id := bind(uid.String())
		parts = append(parts, strings.ReplaceAll(byUID, "?", id))
		if uid.Version() == 7 { // it contains its creation time
			at := time.Unix(uid.Time().UnixTime()).UTC().Truncate(time.Millisecond)
			parts = append(parts, strings.NewReplacer("?", id, "!", bind(at),
				"@", bind(at.Add(2*time.Millisecond))).Replace(byMoment))
		}
	}
	if number, err := strconv.ParseInt(strings.TrimPrefix(named, "#"), 10, 64); err == nil {
		parts = append(parts, strings.ReplaceAll(byNumber, "?", bind(number)))
	}
	lower := strings.ToLower(text)
	parts = append(parts, byText,
		strings.ReplaceAll(byBeginning, "?", bind(postgres.LikePrefix(lower))))
	place := lower
	if _, rest, found := strings.Cut(lower, "://"); found {
		place = rest
	}
	begins, within := bind(postgres.LikePrefix(lower)), bind("% "+postgres.LikePrefix(lower))
	parts = append(parts,
		strings.NewReplacer(
			"?", bind(postgres.LikePrefix(place)), "!", begins, "@", within).Replace(byPlace),
		strings.NewReplacer("?", begins, "!", within).Replace(byName))
	return strings.Join(parts, "\nUNION ALL\n"), args
}
