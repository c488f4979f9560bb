package operator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/alexedwards/scs/v2"
	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
)

// user returns the office's first user in their current state.
func (o *office) user() operator.User {
	o.Helper()
	users, _, err := o.Users(o.Context(), operator.UserFilter{Text: email})
	if err != nil || len(users) != 1 {
		o.Fatalf("loading the user: %v, %v", users, err)
	}
	return users[0]
}

// begin signs the first user in.
func (o *office) begin() operator.Session {
	o.Helper()
	var session operator.Session
	user := o.user()
	o.do(func(ctx context.Context, tx *postgres.Tx) (err error) {
		session, err = o.Begin(ctx, tx, user, operator.Session{
			Method: operator.MethodPassword, Address: address,
			Device: "Firefox/128.0\x00" + strings.Repeat("ü", 400),
		})
		return err
	})
	return session
}

// signed returns the first user and a new session of theirs.
func (o *office) signed() operator.Signed {
	o.Helper()
	session := o.begin()
	return operator.Signed{User: o.user(), Session: session}
}

// resumes reports whether a session can be resumed.
func (o *office) resumes(session operator.Session) bool {
	o.Helper()
	found, ok, err := o.Resume(o.Context(), session.UID.String(), o.user().Credential)
	if err != nil {
		o.Fatal(err)
	}
	return ok && found.Email == email && found.Session.UID == session.UID
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(o *office, user operator.User) error{
		"when the user is disabled": func(o *office, _ operator.User) error {
			return o.try(func(ctx context.Context, tx *postgres.Tx) error {
				_, err := o.Disable(ctx, tx, email)
				return err
			})
		},
		"when the password is set": func(o *office, _ operator.User) error {
			return o.try(func(ctx context.Context, tx *postgres.Tx) error {
				_, err := o.SetPassword(ctx, tx, email, "another long phrase", false)
				return err
			})
		},
		"when the password is reset": func(o *office, user operator.User) error {
			return o.try(func(ctx context.Context, tx *postgres.Tx) error {
				_, _, err := o.ResetPassword(ctx, tx, user.UID)
				return err
			})
		},
		"when the role changes": func(o *office, user operator.User) error {
			return o.try(func(ctx context.Context, tx *postgres.Tx) error {
				_, err := o.SetRole(ctx, tx, user.UID, operator.RoleSupport)
				return err
			})
		},
		"when they are signed out everywhere": func(o *office, user operator.User) error {
			return o.try(func(ctx context.Context, tx *postgres.Tx) error {
				return o.EndSessions(ctx, tx, user.UID)
			})
		},
		"after two hours of silence": func(o *office, _ operator.User) error {
			o.ahead.Add(int64(operator.SessionIdle + time.Second))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			session := o.begin()
			if !o.resumes(session) {
				t.Fatal("the session did not begin")
			}
			if err := end(o, o.user()); err != nil {
				t.Fatal(err)
			}
			if o.resumes(session) {
				t.Error("the session goes on")
			}
			if left, err := o.Sessions(t.Context(), o.user().UID); err != nil || len(left) != 0 {
				t.Errorf("the list still shows %v, %v", left, err)
			}
		})
	}
}

func TestABusySessionEndsAfterItsLifetime(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	session := o.begin()
	for elapsed := time.Duration(0); elapsed < operator.SessionLifetime-time.Hour; {
		elapsed += time.Hour
		o.ahead.Store(int64(elapsed))
		if !o.resumes(session) {
			t.Fatalf("the session ended after %v although it was in use", elapsed)
		}
	}
	o.ahead.Store(int64(operator.SessionLifetime + time.Second))
	if o.resumes(session) {
		t.Error("the session outlives its lifetime")
	}
	if err := o.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := o.count(`SELECT count(*) FROM user_sessions`); got != 0 {
		t.Errorf("%d ended sessions are kept", got)
	}
}

func TestLookingDoesNotKeepASession(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	session := o.begin()
	credential := o.user().Credential
	o.ahead.Store(int64(operator.SessionIdle - time.Minute))
	if _, ok, err := o.Look(t.Context(), session.UID.String(), credential); !ok || err != nil {
		t.Fatalf("a live session: %v, %v", ok, err)
	}
	o.ahead.Store(int64(operator.SessionIdle + time.Minute))
	if o.resumes(session) {
		t.Error("a live page kept the session from idling")
	}
}

func TestNothingElseResumes(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	session := o.begin()
	for name, test := range map[string][2]string{
		"another credential":         {session.UID.String(), "another"},
		"another session":            {uuid.NewString(), o.user().Credential},
		"no id":                      {"", o.user().Credential},
		"the user in the session":    {o.user().UID.String(), o.user().Credential},
		"an id with something added": {session.UID.String() + "'", o.user().Credential},
	} {
		if _, ok, err := o.Resume(t.Context(), test[0], test[1]); ok || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
}

func TestSessionsAreOnesOwn(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	mine, other := o.begin(), o.begin()
	var eve operator.User
	o.do(func(ctx context.Context, tx *postgres.Tx) (err error) {
		eve, err = o.Create(ctx, tx, operator.NewUser{
			Email: "eve@lender.example", Name: "Eve", Role: operator.RoleSupport, Password: password,
		})
		return err
	})
	err := o.try(func(ctx context.Context, tx *postgres.Tx) error {
		return o.EndSession(ctx, tx, eve.UID, mine.UID)
	})
	if lending.ErrorCode(err) != lending.CodeNotFound || !o.resumes(mine) {
		t.Errorf("somebody else's session: %v", err)
	}
	o.do(func(ctx context.Context, tx *postgres.Tx) error {
		return o.EndSessions(ctx, tx, o.user().UID, mine.UID)
	})
	if !o.resumes(mine) || o.resumes(other) {
		t.Error("signing out elsewhere did not end exactly the other session")
	}
	listed, err := o.Sessions(t.Context(), o.user().UID)
	if err != nil || len(listed) != 1 || listed[0].Address != address ||
		!strings.HasPrefix(listed[0].Device, "Firefox/128.0ü") {
		t.Errorf("listed %+v, %v", listed, err)
	}
}

// A hash with older parameters is checked and renewed at the next sign-in, without signing
// anybody out.
func TestOldHashesAreRenewed(t *testing.T) {
	t.Parallel()
	o := newOffice(t).keyed()
	hash := func() (hash string) {
		t.Helper()
		if err := o.DB.Get(&hash, `SELECT password_hash FROM users`); err != nil {
			t.Fatal(err)
		}
		return hash
	}
	old, other := hash(), o.begin()
	credential := o.user().Credential
	o.Passwords = operator.NewHasher(argon2id.Params{
		Memory: 32, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32,
	})
	_ = o.refusal(email, "wrong password", address)
	if hash() != old {
		t.Fatal("a wrong password made another hash")
	}
	for range 2 {
		if _, err := o.SignIn(t.Context(), email, password, from(address)); err != nil {
			t.Fatal(err)
		}
	}
	renewed := hash()
	if !strings.HasPrefix(renewed, "$argon2id$v=19$m=32,t=2,p=1$") {
		t.Errorf("the hash is %q", renewed)
	}
	_, err := o.SignIn(t.Context(), email, password, from(address))
	if err != nil || hash() != renewed {
		t.Errorf("a good hash was made again, %v", err)
	}
	if _, ok, err := o.Resume(t.Context(), other.UID.String(), credential); !ok || err != nil {
		t.Errorf("the other session ended: %v", err)
	}
	o.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := o.SetPassword(ctx, tx, email, "another long phrase", false)
		return err
	})
	if o.user().Credential == credential {
		t.Error("another password has the old credential")
	}
}

// TestPagesDoNotWriteTheirSession commits a session as each page does: that writes it once a
// minute, and whenever its contents change.
func TestPagesDoNotWriteTheirSession(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	store := o.SessionStore()
	until, lifetime := time.Now().Add(time.Hour), time.Now().Add(24*time.Hour)
	written := ""
	commit := func(what string, values map[string]any, later time.Duration, want bool) {
		t.Helper()
		data, err := scs.GobCodec{}.Encode(lifetime, values)
		if err != nil {
			t.Fatal(err)
		}
		ctx := operator.ReadingSession(t.Context())
		if _, _, err := store.FindCtx(ctx, "token"); err != nil {
			t.Fatal(err)
		}
		if err := store.CommitCtx(ctx, "token", data, until.Add(later)); err != nil {
			t.Fatal(err)
		}
		var now string
		if err := o.DB.Get(&now, `SELECT xmin::text FROM sessions`); err != nil {
			t.Fatal(err)
		}
		if got := now != written; got != want {
			t.Errorf("%s: written %t, want %t", what, got, want)
		}
		written = now
	}
	values := map[string]any{"a": "1", "b": "2", "c": "3", "d": "4", "e": "5", "f": "6"}
	commit("begun", values, 0, true)
	for range 20 {
		commit("asked for again", values, 50*time.Second, false)
	}
	commit("asked for after a while", values, 2*time.Minute, true)
	commit("asked for right after", values, 2*time.Minute, false)
	commit("with something else", map[string]any{"a": "2"}, 2*time.Minute, true)
}

// TestSessionsOfRequestsBesideEachOther: a request that only reads does not overwrite what a
// concurrent one has put into their session, and does not restore a session that has ended.
func TestSessionsOfRequestsBesideEachOther(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	store := o.SessionStore()
	lifetime := time.Now().Add(24 * time.Hour)
	encode := func(value string) []byte {
		data, err := scs.GobCodec{}.Encode(lifetime, map[string]any{"secret": value})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	commit := func(ctx context.Context, value string, later time.Duration) {
		t.Helper()
		err := store.CommitCtx(ctx, "token", encode(value), time.Now().Add(time.Hour+later))
		if err != nil {
			t.Fatal(err)
		}
	}
	find := func(ctx context.Context) (string, bool) {
		t.Helper()
		data, found, err := store.FindCtx(ctx, "token")
		if err != nil || !found {
			return "", false
		}
		_, values, err := scs.GobCodec{}.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		return values["secret"].(string), true
	}
	commit(t.Context(), "", 0)
	slow := operator.ReadingSession(t.Context())
	find(slow)
	quick := operator.ReadingSession(t.Context())
	find(quick)
	commit(quick, "shown once", 0)
	commit(slow, "", 10*time.Minute)
	if got, _ := find(t.Context()); got != "shown once" {
		t.Errorf("the session holds %q", got)
	}
	if err := store.DeleteCtx(t.Context(), "token"); err != nil {
		t.Fatal(err)
	}
	commit(slow, "", 20*time.Minute)
	commit(quick, "again", 20*time.Minute)
	if got, found := find(t.Context()); found {
		t.Errorf("a session that ended holds %q", got)
	}
}
