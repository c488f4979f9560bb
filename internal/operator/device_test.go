package operator_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
)

// keyed gives the office keys, without which no device is recognised.
func (o *office) keyed() *office {
	o.Helper()
	keys, err := secret.ParseKeyring(secret.GenerateKey())
	if err != nil {
		o.Fatal(err)
	}
	o.Keys = keys
	return o
}

// lock makes unknown visitors guess until the account is locked to them.
func (o *office) lock() {
	o.Helper()
	for range 5 {
		_ = o.refusal(email, "wrong password", "203.0.113.9")
	}
	if got := o.refusal(email, password, address); got.Code != lending.CodeRateLimited {
		o.Fatalf("a stranger with the right password: %v", got)
	}
}

// Unknown visitors who guess lock the account for unknown visitors, but not for its owner.
func TestStrangersDoNotLockOutTheOwner(t *testing.T) {
	t.Parallel()
	o := newOffice(t).keyed()
	kept := o.NewDevice(email, "")
	signed := o.signed()
	o.lock()
	device := operator.Visitor{Address: address, Known: o.Device(" ADA@lender.example", kept)}
	if _, err := o.SignIn(t.Context(), email, password, device); err != nil {
		t.Errorf("the owner's device: %v", err)
	}
	if err := o.CheckPassword(t.Context(), signed, password); err != nil {
		t.Errorf("the owner's session: %v", err)
	}
	// The owner's successful sign-in gives unknown visitors no further attempts.
	if got := o.refusal(email, password, address); got.Code != lending.CodeRateLimited {
		t.Errorf("strangers go on: %v", got)
	}
}

// Known devices have limits of their own.
func TestKnownDevicesAreLimited(t *testing.T) {
	t.Parallel()
	o := newOffice(t).keyed()
	device := operator.Visitor{Address: address, Known: o.Device(email, o.NewDevice(email, ""))}
	signed := o.signed()
	for range 5 {
		if _, err := o.SignIn(t.Context(), email, "wrong", device); lending.ErrorCode(err) !=
			lending.CodeUnauthorized {
			t.Fatal(err)
		}
		if err := o.CheckPassword(t.Context(), signed, "wrong"); lending.ErrorCode(err) !=
			lending.CodeUnauthorized {
			t.Fatal(err)
		}
	}
	again := operator.Visitor{Known: o.Device(email, o.NewDevice(email, device.Known))}
	for name, err := range map[string]error{
		"device":             second(o.SignIn(t.Context(), email, password, device)),
		"device named again": second(o.SignIn(t.Context(), email, password, again)),
		"session":            o.CheckPassword(t.Context(), signed, password),
	} {
		if lending.ErrorCode(err) != lending.CodeRateLimited {
			t.Errorf("the %s goes on: %v", name, err)
		}
	}
	if _, err := o.SignIn(t.Context(), email, password, from(address)); err != nil {
		t.Errorf("a stranger is locked out by them: %v", err)
	}
}

// The same form sent twice changes the password once: the second arrival, whose password has become
// wrong meanwhile, is not counted as a guess.
func TestAPasswordThatWasChangedMeanwhileIsNoGuess(t *testing.T) {
	t.Parallel()
	o := newOffice(t).keyed()
	signed := o.signed()
	pgtest.Exec(t, o.DB, `UPDATE users SET credential = 'of another password'`)
	if err := o.CheckPassword(t.Context(), signed, "wrong"); lending.ErrorCode(err) !=
		lending.CodeUnauthorized {
		t.Errorf("CheckPassword: %v, want UNAUTHORIZED", err)
	}
	if counted := o.count(`SELECT count(*) FROM sign_in_failures`); counted != 0 {
		t.Errorf("%d guesses are counted, want 0", counted)
	}
}

func second[T any](_ T, err error) error { return err }

func TestDevicesAreSealed(t *testing.T) {
	t.Parallel()
	o := newOffice(t).keyed()
	kept := o.NewDevice(email, "")
	known := o.Device(email, kept)
	if known == "" || known == o.Device(email, o.NewDevice(email, "")) {
		t.Error("a device is not known, or as another one")
	}
	if other := operator.DeviceCookie("eve@lender.example"); other == operator.DeviceCookie(email) {
		t.Error("two accounts share a cookie")
	}
	for name, test := range map[string][2]string{
		"another account": {"eve@lender.example", kept},
		"nothing":         {email, ""},
		"made up":         {email, "device:x 9999999999"},
		"cut off":         {email, kept[:len(kept)-1]},
	} {
		if known := o.Device(test[0], test[1]); known != "" {
			t.Errorf("%s is known as %q", name, known)
		}
	}
	o.ahead.Store(int64(operator.DeviceLife + time.Minute))
	if known := o.Device(email, kept); known != "" {
		t.Errorf("after half a year it is known as %q", known)
	}
}

// An address that looks like the key of something else locks nothing else.
func TestNoAddressIsTheKeyOfSomethingElse(t *testing.T) {
	t.Parallel()
	e := newEnrolled(t)
	for _, typed := range []string{
		"code:" + email, "codes stranger " + email, "stranger " + email,
	} {
		for range 5 {
			_ = e.refusal(typed, "wrong password", "203.0.113.9")
		}
	}
	if _, err := e.check(e.appCode(0)); err != nil {
		t.Errorf("the right code: %v", err)
	}
}

// A customer has a whole /64 of IPv6, which counts as one address.
func TestIPv6CountsByNetwork(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		guesser, other string
		locked         bool
	}{
		"the same /64":         {"2001:db8:1:2::N", "2001:db8:1:2:ffff::1", true},
		"with a zone":          {"fe80::N", "fe80::1%eth0", true},
		"another /64":          {"2001:db8:1:2::N", "2001:db8:1:3::1", false},
		"IPv4 as IPv6":         {"::ffff:192.0.2.7", "192.0.2.7", true},
		"another IPv4 as IPv6": {"::ffff:192.0.2.7", "::ffff:192.0.2.8", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			for i := range 20 {
				guesser := strings.ReplaceAll(test.guesser, "N", strconv.Itoa(i))
				_ = o.refusal(strconv.Itoa(i)+"@lender.example", "wrong password", guesser)
			}
			_, err := o.SignIn(t.Context(), email, password, from(test.other))
			if locked := lending.ErrorCode(err) == lending.CodeRateLimited; locked != test.locked {
				t.Errorf("refused: %v (%v), want %v", locked, err, test.locked)
			}
		})
	}
}
