package operator

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// maxViews is how many views one user may save per list.
const maxViews = 50

// SavedViews stores the filtered lists that users return to.
type SavedViews struct{ DB *postgres.DB }

// SavedView is a filtered list that a user saved under a name.
type SavedView struct {
	UID  uuid.UUID `db:"view_uid"`
	Name string    `db:"name"`
	// Path is the path of the list, Query its filter as in a URL.
	Path  string `db:"path"`
	Query string `db:"query"`
}

// List returns the views that a user saved for one list, by name.
func (v SavedViews) List(ctx context.Context, user uuid.UUID, path string) ([]SavedView, error) {
	var saved []SavedView
	err := v.DB.SelectContext(ctx, &saved, `
		SELECT view_uid,
		       name,
		       path,
		       query
		  FROM saved_views
		 WHERE user_uid = $1
		   AND path = $2
		 ORDER BY lower(name), view_uid`, user, path)
	if err != nil {
		return nil, fmt.Errorf("listing the saved views of %s: %w", path, err)
	}
	return saved, nil
}

// Save stores a view, replacing one of the same name for the same list. Error: VALIDATION_ERROR
// for the name, the filter or too many of them.
func (SavedViews) Save(ctx context.Context, tx *postgres.Tx, user uuid.UUID, view SavedView) error {
	view.Name = strings.TrimSpace(view.Name)
	if length := utf8.RuneCountInString(view.Name); length < 1 || length > 60 ||
		!utf8.ValidString(view.Name) || strings.ContainsRune(view.Name, 0) {
		return lending.Invalid("name", `"name" must have 1 to 60 characters`)
	}
	if len(view.Query) > 2000 {
		return lending.Invalid("filter", `"filter" is too long to be saved`)
	}
	count, err := postgres.Affected(tx.ExecContext(ctx, `
		INSERT INTO saved_views (view_uid, user_uid, name, path, query, created_at)
		SELECT $1, $2, $3, $4, $5, $6
		 WHERE (SELECT count(*)
		          FROM saved_views
		         WHERE user_uid = $2 AND path = $4 AND name <> $3) < $7
		    ON CONFLICT (user_uid, path, name) DO UPDATE SET query = excluded.query`,
		postgres.NewUID(tx.Now), user, view.Name, view.Path, view.Query, tx.Now, maxViews))
	if err != nil {
		return fmt.Errorf("saving the view %q: %w", view.Name, err)
	}
	if count == 0 {
		return lending.Invalid("name", "%d views are saved for this list; delete one first",
			maxViews)
	}
	return nil
}

// Delete deletes one of the user's own views. Error: NOT_FOUND.
func (SavedViews) Delete(ctx context.Context, tx *postgres.Tx, user, view uuid.UUID) error {
	count, err := postgres.Affected(tx.ExecContext(ctx,
		`DELETE FROM saved_views WHERE view_uid = $1 AND user_uid = $2`, view, user))
	if err != nil {
		return fmt.Errorf("deleting the saved view %s: %w", view, err)
	}
	if count == 0 {
		return lending.NewError(lending.CodeNotFound, "no saved view of yours has the id %s", view)
	}
	return nil
}
