// Package account renders the sign-in, the user's own account, and the second factor.
package account

// SignInForm is the form of the sign-in page.
type SignInForm struct {
	// Email is the submitted address.
	Email string
	// Next is the page to go to afterwards, a path of the console.
	Next string
	// Problem says why signing in failed, Notice why the user has to sign in.
	Problem string
	Notice  string
	// Provider names the OpenID Connect provider; empty if there is none.
	Provider string
}
