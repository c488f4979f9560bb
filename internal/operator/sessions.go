package operator

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/alexedwards/scs/postgresstore"
	"github.com/alexedwards/scs/v2"
	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// A session ends after being idle for so long, and in any case after its lifetime: a working
// day.
const (
	SessionIdle     = 2 * time.Hour
	SessionLifetime = 12 * time.Hour
	// ProofLife is how long a password check is valid for risky actions.
	ProofLife = 15 * time.Minute
	// seenEvery bounds how often a busy session records its use.
	seenEvery = time.Minute
	// maxDevice bounds the stored user agent of a browser, in bytes.
	maxDevice = 400
)

// Method is how a user signed in.
type Method string

// The ways to sign in.
const (
	MethodPassword Method = "password"
	MethodProvider Method = "provider"
)

// Session is one sign-in of a user.
type Session struct {
	UID    uuid.UUID `db:"session_uid"`
	Method Method    `db:"method"`
	// Address and Device are recorded at the sign-in.
	Address   string    `db:"address"`
	Device    string    `db:"device"`
	StartedAt time.Time `db:"started_at"`
	// SeenAt is exact to a minute.
	SeenAt   time.Time `db:"seen_at"`
	ProvedAt time.Time `db:"proved_at"`
}

// Signed is a signed-in user with their session.
type Signed struct {
	User
	Session
}

const sessionColumns = `session_uid, method, address, device, started_at, seen_at, proved_at`

// SessionStore keeps the data of the console's cookies in the database, so that every process
// has it.
type SessionStore struct {
	*postgresstore.PostgresStore

	db *postgres.DB
}

// SessionStore returns the store of the database. It does not remove expired sessions itself:
// Purge does.
func (s *Service) SessionStore() SessionStore {
	return SessionStore{postgresstore.NewWithCleanupInterval(s.DB.DB.DB, 0), s.DB}
}

// FindCtx returns the data of a token, and false if it has expired.
func (s SessionStore) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	var data []byte
	err := s.db.GetContext(ctx, &data, `
		SELECT data FROM sessions WHERE token = $1 AND current_timestamp < expiry`, token)
	if postgres.IsNoRows(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("loading a session: %w", err)
	}
	if read, _ := ctx.Value(readKey{}).(*readSession); read != nil {
		*read = readSession{token, data}
	}
	return data, true, nil
}

// DeleteCtx deletes the data of a token.
func (s SessionStore) DeleteCtx(ctx context.Context, token string) error {
	if _, err := s.db.ExecContext(ctx, `DELETE FROM sessions WHERE token = $1`, token); err != nil {
		return fmt.Errorf("forgetting a session: %w", err)
	}
	return nil
}

// CommitCtx keeps data until a time by this machine's clock. It converts that to a duration and
// counts it by the database's clock, against which the data is read.
//
// Data that a request read and did not change is not written again, because another request may
// have changed it meanwhile: only its expiry is extended, by more than seenEvery at a time so that
// not every page writes. Data that was read and then deleted, as at a sign-out, is not restored.
func (s SessionStore) CommitCtx(
	ctx context.Context, token string, data []byte, until time.Time,
) error {
	read, _ := ctx.Value(readKey{}).(*readSession)
	known, lasts := read != nil && read.token == token, time.Until(until)
	var err error
	switch {
	case known && sameSession(read.data, data):
		_, err = s.db.ExecContext(ctx, `
			UPDATE sessions
			   SET expiry = clock_timestamp() + make_interval(secs => $2)
			 WHERE token = $1
			   AND expiry < clock_timestamp() + make_interval(secs => $3)`,
			token, lasts.Seconds(), (lasts - seenEvery).Seconds())
	case known:
		_, err = s.db.ExecContext(ctx, `
			UPDATE sessions
			   SET data = $2,
			       expiry = clock_timestamp() + make_interval(secs => $3)
			 WHERE token = $1`, token, data, lasts.Seconds())
	default:
		_, err = s.db.ExecContext(ctx, `
			INSERT INTO sessions (token, data, expiry)
			VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
			ON CONFLICT (token) DO UPDATE SET data = excluded.data, expiry = excluded.expiry`,
			token, data, lasts.Seconds())
	}
	if err != nil {
		return fmt.Errorf("keeping a session: %w", err)
	}
	return nil
}

// readSession is the session data that a request read.
type readSession struct {
	token string
	data  []byte
}

type readKey struct{}

// ReadingSession returns a context that remembers the session data that a request reads, so that
// CommitCtx can find out what the request changed.
func ReadingSession(ctx context.Context) context.Context {
	return context.WithValue(ctx, readKey{}, new(readSession))
}

// sameSession compares the contents of sessions, whose encoding varies in order.
func sameSession(a, b []byte) bool {
	var codec scs.GobCodec
	endA, valuesA, errA := codec.Decode(a)
	endB, valuesB, errB := codec.Decode(b)
	return errors.Join(errA, errB) == nil && endA.Equal(endB) && reflect.DeepEqual(valuesA, valuesB)
}

// Begin starts a session of a user who has proved who they are, at visit.ProvedAt or else just
// now. Address and device are those of the request.
func (s *Service) Begin(
	ctx context.Context, tx *postgres.Tx, user User, visit Session,
) (Session, error) {
	visit.UID = postgres.NewUID(tx.Now)
	visit.StartedAt, visit.SeenAt = tx.Now, tx.Now
	if visit.ProvedAt.IsZero() {
		visit.ProvedAt = tx.Now
	}
	visit.Device = clip(visit.Device, maxDevice)
	_, err := tx.ExecContext(ctx, `
		INSERT INTO user_sessions (user_uid, `+sessionColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, user.UID, visit.UID, visit.Method, visit.Address,
		visit.Device, visit.StartedAt, visit.SeenAt, visit.ProvedAt)
	if err != nil {
		return Session{}, fmt.Errorf("beginning a session of %s: %w", user.Email, err)
	}
	_, err = tx.ExecContext(ctx, `UPDATE users SET last_sign_in_at = $2 WHERE user_uid = $1`,
		user.UID, tx.Now)
	if err != nil {
		return Session{}, fmt.Errorf("noting the sign-in of %s: %w", user.Email, err)
	}
	return visit, nil
}

// clip cuts text to a number of bytes and drops what Postgres cannot store.
func clip(text string, limit int) string {
	text = strings.ReplaceAll(text, "\x00", "")
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

// Resume returns the user of a session and keeps it from becoming idle. It returns false if the
// session has ended: it was signed out, here or elsewhere, it was idle or exceeded its lifetime,
// or the user is gone, disabled, or has changed the password since it began, which the
// credential shows.
func (s *Service) Resume(ctx context.Context, uid, credential string) (Signed, bool, error) {
	signed, ok, err := s.Look(ctx, uid, credential)
	now := s.DB.Now()
	if err != nil || !ok || now.Sub(signed.SeenAt) < seenEvery {
		return signed, ok, err
	}
	_, err = s.DB.ExecContext(ctx,
		`UPDATE user_sessions SET seen_at = $2 WHERE session_uid = $1 AND seen_at < $2`,
		signed.Session.UID, now)
	if err != nil {
		return Signed{}, false, fmt.Errorf("noting a session's use: %w", err)
	}
	return signed, true, nil
}

// Look is Resume for requests that occur without the user, such as those of a live page: it does
// not keep the session from becoming idle.
func (s *Service) Look(ctx context.Context, uid, credential string) (Signed, bool, error) {
	sessionUID, err := uuid.Parse(uid)
	if err != nil {
		return Signed{}, false, nil //nolint:nilerr // no id is no session
	}
	var found []Signed
	now := s.DB.Now()
	err = s.DB.SelectContext(ctx, &found, `
		SELECT `+userColumns+`, `+sessionColumns+`
		  FROM user_sessions JOIN users ON users.user_uid = user_sessions.user_uid
		 WHERE session_uid = $1 AND disabled_at IS NULL AND started_at > $2 AND seen_at > $3`,
		sessionUID, now.Add(-SessionLifetime), now.Add(-SessionIdle))
	if err != nil {
		return Signed{}, false, fmt.Errorf("loading the user of a session: %w", err)
	}
	if len(found) == 0 || found[0].Credential != credential {
		return Signed{}, false, nil
	}
	return found[0], true, nil
}

// Sessions lists the live sessions of a user, the most recently used first.
func (s *Service) Sessions(ctx context.Context, user uuid.UUID) ([]Session, error) {
	var found []Session
	now := s.DB.Now()
	err := s.DB.SelectContext(ctx, &found, `
		SELECT `+sessionColumns+` FROM user_sessions
		 WHERE user_uid = $1 AND started_at > $2 AND seen_at > $3
		 ORDER BY seen_at DESC, session_uid DESC`,
		user, now.Add(-SessionLifetime), now.Add(-SessionIdle))
	if err != nil {
		return nil, fmt.Errorf("listing the sessions of user %s: %w", user, err)
	}
	return found, nil
}

// HoldSession keeps the acting user's session from being ended by others until tx ends, for a
// change that ends it itself. It locks the user first, as whoever removes their access does.
// Error: UNAUTHORIZED if the session has ended.
func (s *Service) HoldSession(ctx context.Context, tx *postgres.Tx, signed Signed) error {
	if _, err := lock(ctx, tx, `user_uid = $1`, signed.User.UID); err != nil {
		return err
	}
	return holdSession(ctx, tx, signed.Session.UID)
}

// holdSession is HoldSession for changes that lock nothing of the user afterwards. Disabling
// users and changing their role end their sessions, so checking the session covers both.
func holdSession(ctx context.Context, tx *postgres.Tx, session uuid.UUID) error {
	var lasts bool
	err := tx.GetContext(ctx, &lasts,
		`SELECT true FROM user_sessions WHERE session_uid = $1 FOR KEY SHARE`, session)
	if postgres.IsNoRows(err) {
		return lending.NewError(lending.CodeUnauthorized,
			"Nothing was saved: you were signed out meanwhile, or your access was changed. Sign in "+
				"on another tab, then send the form again from here.")
	}
	if err != nil {
		return fmt.Errorf("holding session %s: %w", session, err)
	}
	return nil
}

// EndSession signs a user out of one session. Error: NOT_FOUND, also for a
// session of somebody else.
func (s *Service) EndSession(ctx context.Context, tx *postgres.Tx, user, session uuid.UUID) error {
	count, err := postgres.Affected(tx.ExecContext(ctx,
		`DELETE FROM user_sessions WHERE user_uid = $1 AND session_uid = $2`, user, session))
	if err != nil {
		return fmt.Errorf("ending session %s: %w", session, err)
	}
	if count == 0 {
		return lending.NewError(lending.CodeNotFound, "this session has ended already")
	}
	return nil
}

// EndSessions signs a user out everywhere except in the sessions to keep.
func (s *Service) EndSessions(
	ctx context.Context, tx *postgres.Tx, user uuid.UUID, keep ...uuid.UUID,
) error {
	kept := append([]uuid.UUID{uuid.Nil}, keep...)
	_, err := tx.ExecContext(ctx, `
		DELETE FROM user_sessions WHERE user_uid = $1 AND session_uid <> ALL ($2::uuid[])`,
		user, pq.Array(kept))
	if err != nil {
		return fmt.Errorf("ending the sessions of user %s: %w", user, err)
	}
	return nil
}

// Prove records that the user of a session has just proved who they are.
func (s *Service) Prove(ctx context.Context, session uuid.UUID) error {
	_, err := s.DB.ExecContext(ctx,
		`UPDATE user_sessions SET proved_at = $2 WHERE session_uid = $1`, session, s.DB.Now())
	if err != nil {
		return fmt.Errorf("noting a proof: %w", err)
	}
	return nil
}

// Purge deletes ended sessions, wrong passwords that no longer count, and forms that were sent a
// day ago or earlier.
func (s *Service) Purge(ctx context.Context) error {
	now := s.DB.Now().UTC()
	var errs []error
	for _, old := range []struct {
		rows  string
		since time.Time
	}{
		{`sessions WHERE expiry < $1`, now},
		{`user_sessions WHERE seen_at < $1`, now.Add(-SessionIdle)},
		{`user_sessions WHERE started_at < $1`, now.Add(-SessionLifetime)},
		{`sign_in_failures WHERE failed_at < $1`, now.Add(-failureWindow)},
		{`console_submissions WHERE at < $1`, now.Add(-submissionsKept)},
	} {
		if _, err := s.DB.ExecContext(ctx, `DELETE FROM `+old.rows, old.since); err != nil {
			errs = append(errs, fmt.Errorf("purging %s: %w", old.rows, err))
		}
	}
	return errors.Join(errs...)
}
