package operator_test

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

// enrolled is an office whose user has a second factor, with its secret and the recovery codes.
// The clock is at the beginning of a step and moves only by hand.
type enrolled struct {
	*office
	secret   string
	recovery []string
}

// appCode returns the code that the user's app shows when its clock is off by some time.
func (e *enrolled) appCode(off time.Duration) string {
	e.Helper()
	code, err := totp.GenerateCode(e.secret, e.DB.Now().Add(off))
	if err != nil {
		e.Fatal(err)
	}
	return code
}

func newEnrolled(t *testing.T) *enrolled {
	t.Helper()
	o := newOffice(t)
	start := time.Now().Truncate(30 * time.Second)
	o.DB.Now = func() time.Time { return start.Add(time.Duration(o.ahead.Load())) }
	keys, err := secret.ParseKeyring(secret.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	o.Keys = keys
	e := &enrolled{office: o}
	signed := o.signed()
	kept, err := o.SecondFactors().Enrol(signed)
	if err != nil {
		t.Fatal(err)
	}
	enrolment, _ := o.SecondFactors().Enrolling(signed, kept)
	e.secret = enrolment.Secret.Reveal()
	o.do(func(ctx context.Context, tx *postgres.Tx) (err error) {
		e.recovery, err = o.SecondFactors().Confirm(ctx, tx, signed, kept, " "+e.appCode(0)+" ")
		return err
	})
	o.ahead.Add(int64(time.Minute)) // the confirming code is used up
	return e
}

func (e *enrolled) check(code string) (bool, error) {
	return e.SecondFactors().Check(context.Background(), e.user(), code, from(address))
}

func TestSecondFactor(t *testing.T) {
	t.Parallel()
	e := newEnrolled(t)
	if !e.user().SecondFactor || len(e.recovery) != 10 {
		t.Fatalf("on = %v, %d recovery codes", e.user().SecondFactor, len(e.recovery))
	}
	if e.count(`SELECT count(*) FROM second_factors WHERE secret_sealed LIKE '%`+e.secret+`%'`) != 0 {
		t.Error("the secret stands in the table as it is")
	}
	code := e.appCode(0)
	if recovered, err := e.check(code[:3] + " " + code[3:]); err != nil || recovered {
		t.Fatalf("the app's code: %v, %v", recovered, err)
	}
	if _, err := e.check(code); lending.ErrorCode(err) != lending.CodeUnauthorized {
		t.Errorf("the same code again: %v", err)
	}
	if _, err := e.check(e.appCode(30 * time.Second)); err != nil {
		t.Errorf("a clock half a minute ahead: %v", err)
	}
	if _, err := e.check(e.appCode(0)); lending.ErrorCode(err) != lending.CodeUnauthorized {
		t.Errorf("a code older than the last one: %v", err)
	}
	e.ahead.Add(int64(5 * time.Minute))
	if _, err := e.check(e.appCode(-30 * time.Second)); err != nil {
		t.Errorf("a clock half a minute behind: %v", err)
	}
	for _, off := range []time.Duration{-time.Minute, time.Minute} {
		if _, err := e.check(e.appCode(off)); lending.ErrorCode(err) != lending.CodeUnauthorized {
			t.Errorf("a clock %v off: %v", off, err)
		}
	}
}

func TestRecoveryCodesWorkOnce(t *testing.T) {
	t.Parallel()
	e := newEnrolled(t)
	typed := strings.ToUpper(strings.ReplaceAll(e.recovery[3], "-", " "))
	if recovered, err := e.check(typed); err != nil || !recovered {
		t.Fatalf("a recovery code: %v, %v", recovered, err)
	}
	if _, err := e.check(e.recovery[3]); lending.ErrorCode(err) != lending.CodeUnauthorized {
		t.Errorf("the same again: %v", err)
	}
	if left, err := e.SecondFactors().RecoveryLeft(t.Context(), e.user()); left != 9 || err != nil {
		t.Errorf("%d left, %v", left, err)
	}
	e.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := e.SecondFactors().NewRecoveryCodes(ctx, tx, e.user())
		return err
	})
	if _, err := e.check(e.recovery[4]); lending.ErrorCode(err) != lending.CodeUnauthorized {
		t.Errorf("a code from before the new ones: %v", err)
	}
}

// TestGuessingCodesIsLimited guesses from two processes at once.
func TestGuessingCodesIsLimited(t *testing.T) {
	t.Parallel()
	e := newEnrolled(t)
	processes := []*operator.Service{e.Service, {DB: e.DB, Keys: e.Keys}}
	user := e.user()
	var looked atomic.Int64
	var tries sync.WaitGroup
	for i := range 40 {
		tries.Go(func() {
			_, err := processes[i%2].SecondFactors().Check(
				context.Background(), user, "000000x", from(address))
			switch lending.ErrorCode(err) {
			case lending.CodeUnauthorized:
				looked.Add(1)
			case lending.CodeRateLimited:
			default:
				t.Errorf("a guess ended in %v", err)
			}
		})
	}
	tries.Wait()
	if looked.Load() > 5 {
		t.Errorf("%d codes were looked at, want at most 5", looked.Load())
	}
	// Guesses that all arrive at one moment cause each other's refusal, and those do not count.
	for range 5 {
		if _, err := e.check("000000x"); err == nil {
			t.Fatal("a guess was right")
		}
	}
	if _, err := e.check(e.appCode(0)); lending.ErrorCode(err) != lending.CodeRateLimited {
		t.Errorf("the right code beyond the limit: %v", err)
	}
	if _, err := e.SignIn(t.Context(), email, password, from("198.51.100.9")); err != nil {
		t.Errorf("wrong codes count as wrong passwords: %v", err)
	}
	e.ahead.Add(int64(15*time.Minute + time.Second))
	if _, err := e.check(e.appCode(0)); err != nil {
		t.Errorf("after the wait: %v", err)
	}
}

// TestOneCodeLetsOneIn sends the right code twenty times concurrently.
func TestOneCodeLetsOneIn(t *testing.T) {
	t.Parallel()
	for name, pick := range map[string]func(e *enrolled) string{
		"app": func(e *enrolled) string { return e.appCode(0) },
		"recovery": func(e *enrolled) string {
			return e.recovery[0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnrolled(t)
			user, code := e.user(), pick(e)
			var in atomic.Int64
			var tries sync.WaitGroup
			for range 5 {
				tries.Go(func() {
					_, err := e.SecondFactors().Check(context.Background(), user, code, from(address))
					if err == nil {
						in.Add(1)
					}
				})
			}
			tries.Wait()
			if in.Load() != 1 {
				t.Errorf("%d were let in with one code", in.Load())
			}
		})
	}
}

func TestEnrolment(t *testing.T) {
	t.Parallel()
	e := newEnrolled(t)
	_, err := e.SecondFactors().Enrol(e.signed())
	if lending.ErrorCode(err) != lending.CodeInvalidState {
		t.Errorf("a second enrolment: %v", err)
	}
	e.do(func(ctx context.Context, tx *postgres.Tx) error {
		return e.SecondFactors().Remove(ctx, tx, e.user())
	})
	if e.user().SecondFactor || e.count(`SELECT count(*) FROM recovery_codes`) != 0 {
		t.Error("the factor or its codes are still there")
	}
	signed := e.signed()
	if _, begun := e.SecondFactors().Enrolling(signed, ""); begun {
		t.Error("an enrolment before anybody has begun")
	}
	kept, err := e.SecondFactors().Enrol(signed)
	if err != nil {
		t.Fatal(err)
	}
	first, begun := e.SecondFactors().Enrolling(signed, kept)
	if !begun || first.Secret.Reveal() == e.secret || strings.Contains(kept, first.Secret.Reveal()) {
		t.Errorf("begun %v: the secret is the old one, or stands in the session as it is", begun)
	}
	picture, err := first.QR()
	if err != nil {
		t.Fatal(err)
	}
	if drawn, err := png.Decode(bytes.NewReader(picture)); err != nil || drawn.Bounds().Dx() != 240 {
		t.Errorf("the picture: %v", err)
	}
	if _, err := e.confirm(signed, kept, "000000"); lending.ErrorCode(err) != lending.CodeValidation ||
		e.user().SecondFactor {
		t.Errorf("a wrong first code: %v", err)
	}
}

// confirm activates a second factor.
func (o *office) confirm(signed operator.Signed, kept, code string) (codes []string, err error) {
	err = o.try(func(ctx context.Context, tx *postgres.Tx) (err error) {
		codes, err = o.SecondFactors().Confirm(ctx, tx, signed, kept, code)
		return err
	})
	return codes, err
}

// An enrolment belongs to the session and the password with which it began, and expires after a
// quarter of an hour.
func TestEnrolmentBelongsToItsSession(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		later func(e *enrolled, signed operator.Signed) operator.Signed
		good  bool
	}{
		"the same session, soon": {func(e *enrolled, signed operator.Signed) operator.Signed {
			e.ahead.Add(int64(14 * time.Minute))
			return signed
		}, true},
		"the same session, late": {func(e *enrolled, signed operator.Signed) operator.Signed {
			e.ahead.Add(int64(15*time.Minute + time.Second))
			return signed
		}, false},
		"another session": {func(e *enrolled, _ operator.Signed) operator.Signed {
			return e.signed()
		}, false},
		"another password": {func(e *enrolled, signed operator.Signed) operator.Signed {
			e.do(func(ctx context.Context, tx *postgres.Tx) error {
				_, err := e.SetPassword(ctx, tx, email, "another long phrase", false)
				return err
			})
			return operator.Signed{User: e.user(), Session: signed.Session}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnrolled(t)
			e.do(func(ctx context.Context, tx *postgres.Tx) error {
				return e.SecondFactors().Remove(ctx, tx, e.user())
			})
			signed := e.signed()
			kept, err := e.SecondFactors().Enrol(signed)
			if err != nil {
				t.Fatal(err)
			}
			enrolment, _ := e.SecondFactors().Enrolling(signed, kept)
			e.secret = enrolment.Secret.Reveal()
			signed = test.later(e, signed)
			if _, begun := e.SecondFactors().Enrolling(signed, kept); begun != test.good {
				t.Errorf("it goes on: %v, want %v", begun, test.good)
			}
			_, err = e.confirm(signed, kept, e.appCode(0))
			if (err == nil) != test.good || e.user().SecondFactor != test.good {
				t.Errorf("confirmed: %v, want %v", err, test.good)
			}
		})
	}
}

// Of two sessions that set up a factor at once, the first to confirm has it.
func TestOneEnrolmentIsConfirmed(t *testing.T) {
	t.Parallel()
	e := newEnrolled(t)
	e.do(func(ctx context.Context, tx *postgres.Tx) error {
		return e.SecondFactors().Remove(ctx, tx, e.user())
	})
	var errs []error
	here, there := e.signed(), e.signed()
	keptHere, err := e.SecondFactors().Enrol(here)
	keptThere, thereErr := e.SecondFactors().Enrol(there)
	if err := errors.Join(err, thereErr); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		signed operator.Signed
		kept   string
	}{{here, keptHere}, {there, keptThere}} {
		enrolment, _ := e.SecondFactors().Enrolling(one.signed, one.kept)
		e.secret = enrolment.Secret.Reveal()
		_, err := e.confirm(one.signed, one.kept, e.appCode(0))
		errs = append(errs, err)
	}
	if errs[0] != nil || lending.ErrorCode(errs[1]) != lending.CodeInvalidState {
		t.Errorf("confirmed: %v", errs)
	}
}

func TestSecondFactorOfARole(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	require := func(roles ...operator.Role) error {
		return o.try(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := o.SecondFactors().Require(ctx, tx, roles)
			return err
		})
	}
	if o.user().LacksSecondFactor() {
		t.Error("a factor is asked for although nobody wants it")
	}
	if err := require(operator.RoleOperator); err != nil || !o.user().LacksSecondFactor() {
		t.Errorf("the user's role: %v, lacks = %v", err, o.user().LacksSecondFactor())
	}
	if err := require(operator.RoleAdmin); err != nil || o.user().LacksSecondFactor() {
		t.Errorf("another role: %v", err)
	}
	if err := require("root"); wrongFields(err) != "roles" {
		t.Errorf("an unknown role: %v", err)
	}
}
