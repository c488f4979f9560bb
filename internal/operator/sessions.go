package operator

import (
	"context"
	"fmt"

	"github.com/alexedwards/scs/postgresstore"
)

// SessionStore keeps the console's sessions in the database, so that they hold
// on every process and can be ended from any. It clears nothing by itself:
// Purge does.
func (s *Service) SessionStore() *postgresstore.PostgresStore {
	return postgresstore.NewWithCleanupInterval(s.DB.DB.DB, 0)
}

// Resume returns the user of a session, and false when the session has ended:
// the user is gone or disabled, or the password is another one than when the
// session began, which the credential tells.
func (s *Service) Resume(
	ctx context.Context, uid, credential string,
) (User, bool, error) {
	var users []User
	err := s.DB.SelectContext(ctx, &users,
		`SELECT `+userColumns+` FROM users WHERE user_uid = $1::uuid`, uid)
	if err != nil {
		return User{}, false, fmt.Errorf("loading the user of a session: %w", err)
	}
	if len(users) == 0 || users[0].DisabledAt != nil || users[0].Credential != credential {
		return User{}, false, nil
	}
	return users[0], true, nil
}

// Purge deletes sessions that have expired and wrong passwords that no longer
// count.
func (s *Service) Purge(ctx context.Context) error {
	_, err := s.DB.ExecContext(ctx, `DELETE FROM sessions WHERE expiry < $1`, s.DB.Now())
	if err != nil {
		return fmt.Errorf("purging sessions: %w", err)
	}
	return s.PurgeFailures(ctx)
}
