package operator_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

const (
	email    = "ada@lender.example"
	password = "correct horse battery"
	address  = "192.0.2.7"
)

// cheap hashes passwords fast, for tests that are not about hashing.
var cheap = operator.NewHasher(argon2id.Params{
	Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32,
})

// from is an unknown visitor at a network address.
func from(address string) operator.Visitor { return operator.Visitor{Address: address} }

// office is a service with its own database and one user, whose clock can be moved ahead.
type office struct {
	*testing.T
	*operator.Service
	ahead atomic.Int64
}

func newOffice(t *testing.T) *office {
	t.Helper()
	db := pgtest.New(t)
	o := &office{T: t, Service: &operator.Service{DB: db, Passwords: cheap}}
	db.Now = func() time.Time { return time.Now().Add(time.Duration(o.ahead.Load())) }
	o.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := o.Create(ctx, tx, operator.NewUser{
			Email: email, Name: "Ada Park", Role: operator.RoleOperator, Password: password,
		})
		return err
	})
	return o
}

func (o *office) try(use func(ctx context.Context, tx *postgres.Tx) error) error {
	ctx := o.Context()
	return o.DB.InTx(ctx, func(tx *postgres.Tx) error { return use(ctx, tx) })
}

func (o *office) do(use func(ctx context.Context, tx *postgres.Tx) error) {
	o.Helper()
	if err := o.try(use); err != nil {
		o.Fatal(err)
	}
}

func (o *office) count(query string) int {
	o.Helper()
	return pgtest.Count(o, o.DB, query)
}

func TestRolesNest(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		have, need operator.Role
		want       bool
	}{
		{operator.RoleAdmin, operator.RoleSupport, true},
		{operator.RoleOperator, operator.RoleSupport, true},
		{operator.RoleSupport, operator.RoleSupport, true},
		{operator.RoleSupport, operator.RoleOperator, false},
		{operator.RoleOperator, operator.RoleAdmin, false},
		{"", operator.RoleSupport, false},
		{"root", operator.RoleSupport, false},
		{operator.RoleAdmin, "", false},
	} {
		if got := test.have.Allows(test.need); got != test.want {
			t.Errorf("%q allows %q = %v, want %v", test.have, test.need, got, test.want)
		}
	}
}

func TestCreateNamesEveryWrongField(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	good := operator.NewUser{
		Email: "bo@lender.example", Name: "Bo", Role: operator.RoleAdmin, Password: password,
	}
	tests := []struct {
		name   string
		change func(*operator.NewUser)
		want   string
	}{
		{"right", func(*operator.NewUser) {}, ""},
		{"no address", func(u *operator.NewUser) { u.Email = "bo" }, "email"},
		{"an endless address", func(u *operator.NewUser) {
			u.Email = strings.Repeat("b", 255) + "@x.example"
		}, "email"},
		{"a name in the address", func(u *operator.NewUser) { u.Email = "Bo <bo@x.example>" }, "email"},
		{"taken", func(u *operator.NewUser) { u.Email = " ADA@lender.example " }, "email"},
		{"no name", func(u *operator.NewUser) { u.Name = "  " }, "name"},
		{"no such role", func(u *operator.NewUser) { u.Role = "root" }, "role"},
		{"short password", func(u *operator.NewUser) { u.Password = "too short" }, "password"},
		{"endless password", func(u *operator.NewUser) {
			u.Password = strings.Repeat("x", 201)
		}, "password"},
		{
			"all at once",
			func(u *operator.NewUser) { *u = operator.NewUser{} },
			"email name role password",
		},
		{"a demo password may be short", func(u *operator.NewUser) {
			u.Email, u.Password, u.Demo = "demo@lender.example", "demo", true
		}, ""},
	}
	for _, test := range tests {
		request := good
		test.change(&request)
		err := o.try(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := o.Create(ctx, tx, request)
			return err
		})
		if got := wrongFields(err); got != test.want {
			t.Errorf("%s: faults in %q (%v), want %q", test.name, got, err, test.want)
		}
	}
}

func wrongFields(err error) string {
	refusal, ok := errors.AsType[*lending.Error](err)
	if !ok {
		return ""
	}
	var fields []string
	for _, problem := range refusal.Details {
		fields = append(fields, problem.Field)
	}
	return strings.Join(fields, " ")
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	user, err := o.SignIn(t.Context(), " ADA@Lender.example", password, from(address))
	if err != nil || user.Name != "Ada Park" || user.Role != operator.RoleOperator {
		t.Fatalf("signed in as %+v, %v", user, err)
	}
	if o.count(`SELECT count(*) FROM users WHERE password_hash LIKE '%horse%'`) != 0 {
		t.Error("the password stands in the table")
	}
	unknown := o.refusal("nobody@lender.example", password, address)
	wrong := o.refusal(email, "wrong password", address)
	if unknown.Code != lending.CodeUnauthorized || unknown.Message != wrong.Message {
		t.Errorf("an unknown address answers %v, a wrong password %v", unknown, wrong)
	}
	o.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := o.Disable(ctx, tx, email)
		return err
	})
	if disabled := o.refusal(email, password, address); disabled.Message != wrong.Message {
		t.Errorf("a disabled user is told %v", disabled)
	}
}

func (o *office) refusal(email, password, address string) *lending.Error {
	o.Helper()
	_, err := o.SignIn(o.Context(), email, password, from(address))
	refusal, ok := errors.AsType[*lending.Error](err)
	if !ok {
		o.Fatalf("signing in as %q: %v, want a refusal", email, err)
	}
	return refusal
}

func TestSignInLimitsPerAccount(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for i := range 5 {
		if got := o.refusal(email, "wrong password", address); got.Code != lending.CodeUnauthorized {
			t.Fatalf("try %d: %v", i, got)
		}
	}
	for range 3 {
		if got := o.refusal(email, password, "198.51.100.9"); got.Code != lending.CodeRateLimited {
			t.Fatalf("beyond the limit, from another address: %v", got)
		}
	}
	// Attempts beyond the limit do not prolong it.
	o.ahead.Store(int64(15*time.Minute + time.Second))
	if _, err := o.SignIn(t.Context(), email, password, from(address)); err != nil {
		t.Errorf("after the wait: %v", err)
	}
}

func TestSignInForgivesAfterSuccess(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for range 3 {
		for range 4 {
			_ = o.refusal(email, "wrong password", address)
		}
		if _, err := o.SignIn(t.Context(), email, password, from(address)); err != nil {
			t.Fatalf("after four wrong ones: %v", err)
		}
	}
}

func TestSignInLimitsPerAddress(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for i := range 20 {
		_ = o.refusal(strings.Repeat("x", i+1)+"@lender.example", "wrong password", address)
	}
	if got := o.refusal(email, password, address); got.Code != lending.CodeRateLimited {
		t.Errorf("the address goes on: %v", got)
	}
	if _, err := o.SignIn(t.Context(), email, password, from("198.51.100.9")); err != nil {
		t.Errorf("from elsewhere: %v", err)
	}
}

// TestSimultaneousTriesKeepTheLimit checks that guessing in parallel gains nothing: no more
// passwords are checked than in sequence.
func TestSimultaneousTriesKeepTheLimit(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var looked atomic.Int64
	var tries sync.WaitGroup
	for range 40 {
		tries.Go(func() {
			_, err := o.SignIn(context.Background(), email, "wrong password", from(address))
			switch lending.ErrorCode(err) {
			case lending.CodeUnauthorized:
				looked.Add(1)
			case lending.CodeRateLimited:
			default:
				t.Errorf("a try ended in %v", err)
			}
		})
	}
	tries.Wait()
	if looked.Load() > 5 {
		t.Errorf("%d passwords were looked at, want at most 5", looked.Load())
	}
}

func TestUsersOfAnUnknownAddress(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for name, use := range map[string]func(ctx context.Context, tx *postgres.Tx) error{
		"disable": func(ctx context.Context, tx *postgres.Tx) error {
			_, err := o.Disable(ctx, tx, "nobody@lender.example")
			return err
		},
		"set the password": func(ctx context.Context, tx *postgres.Tx) error {
			_, err := o.SetPassword(ctx, tx, "nobody@lender.example", password, false)
			return err
		},
	} {
		if err := o.try(use); lending.ErrorCode(err) != lending.CodeNotFound {
			t.Errorf("%s: %v, want NOT_FOUND", name, err)
		}
	}
}

func TestHasDemoPasswords(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	check := func(want bool) {
		t.Helper()
		if got, err := o.HasDemoPasswords(t.Context()); err != nil || got != want {
			t.Errorf("demo passwords: %v, %v, want %v", got, err, want)
		}
	}
	check(false)
	o.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := o.Create(ctx, tx, operator.NewUser{
			Email: "demo@lender.example", Name: "Demo", Role: operator.RoleAdmin,
			Password: "drawbridge-demo", Demo: true,
		})
		return err
	})
	check(true)
	o.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := o.SetPassword(ctx, tx, "demo@lender.example", password, false)
		return err
	})
	check(false)
}

func TestPurge(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	store := o.SessionStore()
	for token, expiry := range map[string]time.Time{
		"old": time.Now().Add(-time.Minute), "new": time.Now().Add(time.Hour),
	} {
		if err := store.Commit(token, []byte("{}"), expiry); err != nil {
			t.Fatal(err)
		}
	}
	_ = o.refusal(email, "wrong password", address)
	if err := o.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := o.count(`SELECT count(*) FROM sessions WHERE token = 'new'`); got != 1 {
		t.Error("a live session was purged")
	}
	if got := o.count(`SELECT count(*) FROM sessions`); got != 1 {
		t.Errorf("%d sessions left, want the live one", got)
	}
	if got := o.count(`SELECT count(*) FROM sign_in_failures`); got != 1 {
		t.Error("a failure that still counts was purged")
	}
	o.ahead.Store(int64(16 * time.Minute))
	if err := o.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := o.count(`SELECT count(*) FROM sign_in_failures`); got != 0 {
		t.Error("a failure that no longer counts was kept")
	}
}
