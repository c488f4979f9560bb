// Package search finds what somebody pasted or types: ids of every kind,
// references, e-mail addresses, names and endpoints. Big tables are asked for
// whole values and beginnings, which indexes answer.
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

// MaxLength bounds what is searched for, in bytes; no value that could match is
// longer.
const MaxLength = 320

// perKind is how many hits of one kind are returned.
const perKind = 8

// Kind is what a hit is.
type Kind string

// The kinds, in the order of the answer.
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
	// Offered is only chosen, never found: a product that applications may ask for.
	Offered Kind = "offered-product"
)

// Hit is one thing that was found.
type Hit struct {
	Kind Kind `db:"kind"`
	// ID leads to its page, a product's to its row. That of a disbursement, a certificate and a task
	// is its application's.
	ID string `db:"id"`
	// Title names it, Detail tells it from others that are named alike.
	Title  string `db:"title"`
	Detail string `db:"detail"`
	// Part is the number of a disbursement, and the id of another part of an application.
	Part string `db:"part"`
}

// Service searches one database.
type Service struct {
	DB *postgres.DB
}

// Find returns what the text names, grouped by kind, at most a few of each.
// Nothing matches an empty text. Error: VALIDATION_ERROR for one that cannot
// name anything.
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

// subjects are what the subjects of events begin with.
var subjects = []string{"application", "disbursement", "task"}

// query renders the lookups that the text can match, as one statement.
func query(text string) (string, []any) {
	// An event's subject names what it is about, such as disbursement/1471. Whatever else stands
	// behind the slash, as in a partner's reference, belongs to a text like any other.
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
		if uid.Version() == 7 { // it holds the time of its making
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
