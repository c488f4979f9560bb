// Package account renders sign-in, one's own account, and the second factor.
package account

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/operator"
	"drawbridge/views/ui"
)

// SignInCode is the page that asks for the second factor.
type SignInCode struct {
	Environment string
	Theme       string
	Next        string
	Fault       string
}

// Account is the page about the viewer's own account.
type Account struct {
	ui.Frame
	PasswordChanged time.Time
	SecondFactor    bool
	// FactorNeeded tells that the role must have a second factor.
	FactorNeeded bool
	// RecoveryLeft is how many recovery codes have not been used.
	RecoveryLeft int
	// Provider names the provider that the user signs in by; empty without.
	Provider string
	Sessions []operator.Session
	// Current is the session of this very request.
	Current uuid.UUID
}

// PasswordForm is the page on which a user changes their password.
type PasswordForm struct {
	ui.Frame
	// Forced tells that nothing else works before.
	Forced bool
	Faults map[string]string
}

func (p PasswordForm) faults() []ui.FilterFault {
	return ui.FormFaultsOf(p.Faults, "current", "password", "again")
}

// SecondFactorForm is the page that sets up a second factor.
type SecondFactorForm struct {
	ui.Frame
	// Forced tells that nothing else works before.
	Forced bool
	// Secret is the text form of the picture, in groups; empty before it is begun.
	Secret string
	Fault  string
}

// RecoveryCodes is the page that shows recovery codes, once.
type RecoveryCodes struct {
	ui.Frame
	Codes []string
}

// ConfirmForm is the page on which a user shows once more who they are.
type ConfirmForm struct {
	ui.Frame
	Next  string
	Fault string
	// Provider names the provider to sign in again at; empty without one.
	Provider string
}

func joinLines(lines []string) string { return strings.Join(lines, "\n") }

// SignIn is the sign-in page.
type SignIn struct {
	Environment string
	Theme       string
	// Email is what was typed before.
	Email string
	// Next is the page to go to afterwards, a path of the console.
	Next string
	// Fault says why signing in failed, Notice why it is asked for.
	Fault  string
	Notice string
	// Provider names the OpenID Connect provider; empty without one.
	Provider string
}

// ToProvider is the page between the console and the provider.
type ToProvider struct {
	Environment string
	Theme       string
	// Provider names the OpenID Connect provider, Href is its page.
	Provider string
	Href     string
}
