// Package account renders sign-in, one's own account, and the second factor.
package account

// SignInForm is the form of the sign-in page.
type SignInForm struct {
	// Email is what was typed before.
	Email string
	// Next is the page to go to afterwards, a path of the console.
	Next string
	// Problem says why signing in failed, Notice why it is asked for.
	Problem string
	Notice  string
	// Provider names the OpenID Connect provider; empty without one.
	Provider string
}
