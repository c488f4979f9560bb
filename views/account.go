package views

import "time"

// SignInCode is the page that asks for the second factor.
type SignInCode struct {
	Environment string
	Theme       string
	Next        string
	Fault       string
}

// SessionView is one sign-in of a user.
type SessionView struct {
	UID     string
	Device  string
	Address string
	// Provider tells that the sign-in came through the provider.
	Provider bool
	Started  time.Time
	Seen     time.Time
	// Current marks the session of this very request.
	Current bool
}

// Account is the page about the viewer's own account.
type Account struct {
	Frame
	PasswordChanged time.Time
	SecondFactor    bool
	// FactorNeeded tells that the role must have a second factor.
	FactorNeeded bool
	// RecoveryLeft is how many recovery codes have not been used.
	RecoveryLeft int
	// Provider names the provider that the user signs in by; empty without.
	Provider string
	Sessions []SessionView
}

// PasswordForm is the page on which a user changes their password.
type PasswordForm struct {
	Frame
	// Forced tells that nothing else works before.
	Forced bool
	Faults map[string]string
}

func (p PasswordForm) faults() []filterFault {
	return formFaultsOf(p.Faults, "current", "password", "again")
}

// formFaultsOf lists the wrong fields in the order of a form.
func formFaultsOf(faults map[string]string, names ...string) []filterFault {
	var found []filterFault
	for _, name := range names {
		if text := faults[name]; text != "" {
			found = append(found, filterFault{"#" + name, text})
		}
	}
	return found
}

// SecondFactorForm is the page that sets up a second factor.
type SecondFactorForm struct {
	Frame
	// Forced tells that nothing else works before.
	Forced bool
	// Secret is the text form of the picture, in groups; empty before it is begun.
	Secret string
	Fault  string
}

// RecoveryCodes is the page that shows recovery codes, once.
type RecoveryCodes struct {
	Frame
	Codes []string
}

// ConfirmForm is the page on which a user shows once more who they are.
type ConfirmForm struct {
	Frame
	Next  string
	Fault string
	// Provider names the provider to sign in again at; empty without one.
	Provider string
}
