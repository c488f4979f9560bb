package search

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

// Choice is an option that a form offers.
type Choice struct {
	UID   uuid.UUID `db:"uid"`
	Label string    `db:"label"`
}

// Picked is a form's selection of everything that matches.
type Picked struct {
	Choices []Choice
	// Total is the number of matches.
	Total int
}

// picks are the queries for what can be chosen: the label, the name to sort by, and the owning
// partner.
var picks = map[Kind]string{
	Partner: `SELECT partner_uid AS uid, name, name AS label, partner_uid AS owner FROM partners`,
	Merchant: `SELECT m.merchant_uid AS uid, m.name, m.name || ', ' || p.name AS label,
	                  m.partner_uid AS owner
	             FROM merchants m JOIN partners p USING (partner_uid)`,
	Product: `SELECT product_uid AS uid, code AS name, code || ', ' || name AS label,
	                 NULL::uuid AS owner
	            FROM products`,
	Offered: `SELECT product_uid AS uid, code AS name, code || ', ' || name AS label,
	                 NULL::uuid AS owner
	            FROM products
	           WHERE active`,
	Subscription: `SELECT s.subscription_uid AS uid, p.name, s.partner_uid AS owner, p.name || ', ' ||
	                      CASE WHEN s.name = '' THEN w ELSE s.name || ' (' || w || ')' END AS label
	                 FROM subscriptions s
	                 JOIN partners p USING (partner_uid)
	                CROSS JOIN LATERAL
	                      (SELECT rtrim(substr(s.url, strpos(s.url, '://') + 3), '/') AS w) place
	                WHERE s.state <> 'deleted'`,
}

// label renders the label of a choice. Choices with the same label get the end of their id,
// inserted after the name that they share.
func label(kind Kind) string {
	behind := `length(name)`
	if kind == Subscription {
		behind = `length(label)` // the name is the partner's
	}
	return `CASE WHEN (SELECT count(*)
	                     FROM (` + picks[kind] + `) same
	                    WHERE same.name = named.name
	                      AND same.label = named.label) > 1
	             THEN overlay(label PLACING ' …' || right(uid::text, 12) FROM ` + behind + ` + 1 FOR 0)
	             ELSE label
	        END AS label`
}

// CanPick reports whether things of a kind can be chosen.
func CanPick(kind Kind) bool { return picks[kind] != "" }

// Pick returns the first things of a kind, at most limit, whose labels contain a text, by name,
// of one partner or, for the nil owner, of all.
func (s *Service) Pick(
	ctx context.Context, kind Kind, text string, owner uuid.UUID, limit int,
) (Picked, error) {
	var rows []struct {
		Choice

		Total int `db:"total"`
	}
	statement, args := pickQuery(kind, text, owner, limit)
	err := s.DB.SelectContext(ctx, &rows, statement, args...)
	if err != nil {
		return Picked{}, fmt.Errorf("picking a %s: %w", kind, err)
	}
	var found Picked
	for _, row := range rows {
		found.Choices, found.Total = append(found.Choices, row.Choice), row.Total
	}
	return found, nil
}

// pickQuery is the statement of Pick. Without a text, the first things come from the index on
// the names. With a text, every row is checked: there are few enough, and no index order helps.
func pickQuery(kind Kind, text string, owner uuid.UUID, limit int) (string, []any) {
	if text == "" && owner == uuid.Nil {
		return `
			SELECT uid, ` + label(kind) + `, (SELECT count(*) FROM (` + picks[kind] + `) everything) AS total
			  FROM (` + picks[kind] + `) named
			 ORDER BY name, uid
			 LIMIT $1`, []any{limit}
	}
	return `
		SELECT uid, ` + label(kind) + `, count(*) OVER () AS total
		  FROM (` + picks[kind] + `) named
		 WHERE label ILIKE $1
		   AND ($2::uuid IS NULL OR owner = $2)
		 ORDER BY named.label, uid
		 LIMIT $3`, []any{"%" + postgres.LikePrefix(text), postgres.OrNull(owner), limit}
}

// Name returns the choices with the given ids, by name, without ids that do not exist.
func (s *Service) Name(ctx context.Context, kind Kind, uids ...uuid.UUID) ([]Choice, error) {
	texts := make(pq.StringArray, len(uids))
	for i, uid := range uids {
		texts[i] = uid.String()
	}
	var choices []Choice
	err := s.DB.SelectContext(ctx, &choices, `
		SELECT uid, `+label(kind)+` FROM (`+picks[kind]+`) named
		 WHERE uid = ANY ($1::uuid[]) ORDER BY named.label, uid`, texts)
	if err != nil {
		return nil, fmt.Errorf("naming %d of kind %s: %w", len(uids), kind, err)
	}
	return choices, nil
}
