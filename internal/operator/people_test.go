package operator_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
	"drawbridge/internal/waittest"
)

// hire adds a user with a role and returns them.
func (o *office) hire(name string, role operator.Role) operator.User {
	o.Helper()
	var user operator.User
	o.do(func(ctx context.Context, tx *postgres.Tx) (err error) {
		user, err = o.Create(ctx, tx, operator.NewUser{
			Email: name + "@lender.example", Name: name, Role: role, Password: password,
		})
		return err
	})
	return user
}

func TestInvitedUsersChooseAPassword(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var user operator.User
	var once secret.String
	o.do(func(ctx context.Context, tx *postgres.Tx) (err error) {
		user, once, err = o.Invite(ctx, tx, operator.NewUser{
			Email: "bo@lender.example", Name: "Bo", Role: operator.RoleSupport,
		})
		return err
	})
	signed, err := o.SignIn(t.Context(), user.Email, once.Reveal(), from(address))
	if err != nil || !signed.MustChangePassword {
		t.Fatalf("with the one-time password: %+v, %v", signed, err)
	}
	var changed operator.User
	o.do(func(ctx context.Context, tx *postgres.Tx) (err error) {
		changed, err = o.ChangePassword(ctx, tx, signed, "a phrase of my own")
		return err
	})
	if changed.MustChangePassword || changed.PasswordExpiresAt != nil {
		t.Errorf("after choosing one: %+v", changed)
	}
	if _, err := o.SignIn(t.Context(), user.Email, once.Reveal(), from(address)); err == nil {
		t.Error("the one-time password works on")
	}
	o.ahead.Store(int64(30 * 24 * time.Hour))
	if _, err := o.SignIn(t.Context(), user.Email, "a phrase of my own", from(address)); err != nil {
		t.Errorf("the own password ended: %v", err)
	}
}

func TestOneTimePasswordsEnd(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var once secret.String
	o.do(func(ctx context.Context, tx *postgres.Tx) (err error) {
		_, once, err = o.ResetPassword(ctx, tx, o.user().UID)
		return err
	})
	o.ahead.Store(int64(7*24*time.Hour - time.Minute))
	if _, err := o.SignIn(t.Context(), email, once.Reveal(), from(address)); err != nil {
		t.Errorf("on its last day: %v", err)
	}
	o.ahead.Store(int64(7*24*time.Hour + time.Minute))
	if got := o.refusal(email, once.Reveal(), address); got.Code != lending.CodeUnauthorized {
		t.Errorf("after seven days: %v", got)
	}
}

func TestPasswordRule(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for text, good := range map[string]bool{
		"correct horse battery":            true,
		"ångström über öresund":            true,
		"elf Buchstaben":                   true,
		"eleven char":                      false,
		"aaaaaaaaaaaaaaaa":                 false,
		"abababababababab":                 false,
		"123456789012":                     false,
		"Password1234!":                    false,
		"Passw0rdPassw0rd":                 true, // long and unlisted; guarded by the limits on attempts
		"QWERTYuiop[]12":                   false,
		"I love you so much!!":             false,
		"Drawbridge2026!":                  false,
		"ada@lender.example":               false,
		"Ada Park 12345":                   false,
		"ADA.PARK-2026":                    false,
		"lender.example1":                  false,
		"ada likes parking":                true,
		"ada@lender.example is my address": true,
	} {
		err := o.try(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := o.SetPassword(ctx, tx, email, text, false)
			return err
		})
		if (err == nil) != good || (err != nil && wrongFields(err) != "password") {
			t.Errorf("%q: %v, want it taken = %v", text, err, good)
		}
	}
	err := o.try(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := o.SetPassword(ctx, tx, email, password, false)
		if err != nil {
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = o.try(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := o.ChangePassword(ctx, tx, o.user(), password)
		return err
	})
	if wrongFields(err) != "password" {
		t.Errorf("the same password again: %v", err)
	}
	before := o.user()
	o.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := o.SetPassword(ctx, tx, email, "one that an admin sets", false)
		return err
	})
	err = o.try(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := o.ChangePassword(ctx, tx, before, "one that comes too late")
		return err
	})
	if lending.ErrorCode(err) != lending.CodeInvalidState {
		t.Errorf("a change that an admin's came before: %v", err)
	}
}

func TestTheLastAdminStays(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	boss := o.hire("boss", operator.RoleAdmin)
	demote := func(user operator.User) error {
		return o.try(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := o.SetRole(ctx, tx, user.UID, operator.RoleOperator)
			return err
		})
	}
	disable := func(user operator.User, disabled bool) error {
		return o.try(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := o.SetDisabled(ctx, tx, user.UID, disabled)
			return err
		})
	}
	for name, err := range map[string]error{"demote": demote(boss), "disable": disable(boss, true)} {
		if lending.ErrorCode(err) != lending.CodeInvalidState {
			t.Errorf("%s the only admin: %v", name, err)
		}
	}
	second := o.hire("second", operator.RoleAdmin)
	if err := disable(second, true); err != nil {
		t.Errorf("disabling one of two: %v", err)
	}
	if err := demote(boss); lending.ErrorCode(err) != lending.CodeInvalidState {
		t.Errorf("a disabled admin counted as one who can sign in: %v", err)
	}
	if err := disable(second, false); err != nil {
		t.Errorf("giving access back: %v", err)
	}
	if err := demote(boss); err != nil {
		t.Errorf("demoting one of two: %v", err)
	}
}

// TestAdminsCannotRemoveEachOther lets six admins demote one another at the same time: exactly
// one is left, whoever wins.
func TestAdminsCannotRemoveEachOther(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var admins []operator.User
	for i := range 6 {
		admins = append(admins, o.hire(fmt.Sprintf("admin%d", i), operator.RoleAdmin))
	}
	var refused atomic.Int64
	var all sync.WaitGroup
	for _, admin := range admins {
		all.Go(func() {
			err := o.DB.InTx(context.Background(), func(tx *postgres.Tx) error {
				_, err := o.SetRole(context.Background(), tx, admin.UID, operator.RoleSupport)
				return err
			})
			switch lending.ErrorCode(err) {
			case "":
			case lending.CodeInvalidState:
				refused.Add(1)
			default:
				t.Errorf("demoting ended in %v", err)
			}
		})
	}
	all.Wait()
	if refused.Load() != 1 || o.count(`SELECT count(*) FROM users WHERE role = 'admin'`) != 1 {
		t.Errorf("%d were refused, want the last", refused.Load())
	}
}

func TestUsersByPageAndFilter(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for i := range 5 {
		o.hire(fmt.Sprintf("sam%d", i), operator.RoleSupport)
	}
	filter := operator.UserFilter{Role: operator.RoleSupport, Text: "SAM", Limit: 2}
	var seen []string
	for {
		users, more, err := o.Users(t.Context(), filter)
		if err != nil {
			t.Fatal(err)
		}
		for _, user := range users {
			seen = append(seen, user.Name)
		}
		if !more {
			break
		}
		filter.After = users[len(users)-1].Email
	}
	if got := fmt.Sprint(seen); got != "[sam0 sam1 sam2 sam3 sam4]" {
		t.Errorf("pages show %s", got)
	}
	if count, err := o.CountUsers(t.Context(), filter); count != 5 || err != nil {
		t.Errorf("counted %d, %v", count, err)
	}
	for _, text := range []string{"%", "_", `\`, "am"} {
		if users, _, err := o.Users(t.Context(), operator.UserFilter{Text: text}); err != nil ||
			len(users) != 0 {
			t.Errorf("%q finds %d users, %v", text, len(users), err)
		}
	}
}

// Two admins reset each other's password at once: one succeeds and signs the other out, without
// a deadlock that the database has to break.
func TestAdminsResetEachOther(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admins := []operator.User{o.hire("bo", operator.RoleAdmin), o.hire("cy", operator.RoleAdmin)}
	var sessions []operator.Session
	for _, admin := range admins {
		o.do(func(ctx context.Context, tx *postgres.Tx) error {
			session, err := o.Begin(ctx, tx, admin, operator.Session{
				Method: operator.MethodPassword, Address: address,
			})
			sessions = append(sessions, session)
			return err
		})
	}
	gate := pgtest.Begin(t, o.DB, `LOCK TABLE audit_log IN SHARE MODE`)
	var runs atomic.Int32
	done := make(chan error, len(admins))
	for i := range admins {
		go func() {
			_, err := o.Act(o.Context(), operator.Change{
				Actor: admins[i].Email, Session: sessions[i].UID,
				Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
					runs.Add(1)
					other, _, err := o.ResetPassword(ctx, tx, admins[1-i].UID)
					entry := operator.NewEntry("user.password_reset", other.Email, nil, nil)
					return operator.Did("/", entry), err
				},
			})
			done <- err
		}()
	}
	waittest.Until(t, "both wait", func() bool {
		return o.count(`SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`) == len(admins)
	})
	if err := gate.Rollback(); err != nil {
		t.Fatal(err)
	}
	var refusals []lending.Code
	for range admins {
		if err := <-done; err != nil {
			refusals = append(refusals, lending.ErrorCode(err))
		}
	}
	if !slices.Equal(refusals, []lending.Code{lending.CodeUnauthorized}) || runs.Load() != 2 {
		t.Errorf("refused %q in %d runs", refusals, runs.Load())
	}
}
