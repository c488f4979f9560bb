package views

import "net/url"

// Route patterns of sign-in, one's own account and the console's people.
const (
	PathSignInCode     = "/console/sign-in/code"
	PathSignInProvider = "/console/sign-in/provider"
	PathSignInReturn   = "/console/sign-in/provider/return"
	PathAccount        = "/console/account"
	PathConfirm        = "/console/account/confirm"
	PathPassword       = "/console/account/password"
	PathSecondFactor   = "/console/account/second-factor"
	PathSecondFactorQR = "/console/account/second-factor/picture"
	PathSecondBegin    = "/console/account/second-factor/begin"
	PathSecondOff      = "/console/account/second-factor/off"
	PathRecoveryCodes  = "/console/account/recovery-codes"
	PathSessionEnd     = "/console/account/sessions/:session/end"
	PathSessionsEnd    = "/console/account/sessions/end"
	PathPeople         = "/console/people"
	PathPersonNew      = "/console/people/new"
	PathPerson         = "/console/people/:uid"
	PathPersonRole     = "/console/people/:uid/role"
	PathPersonAccess   = "/console/people/:uid/access"
	PathPersonPassword = "/console/people/:uid/password"
	PathPersonFactor   = "/console/people/:uid/second-factor"
	PathPersonSessions = "/console/people/:uid/sessions/end"
	PathPersonSession  = "/console/people/:uid/sessions/:session/end"
)

// SessionEndPath ends one of the viewer's own sessions.
func SessionEndPath(session string) string {
	return PathAccount + "/sessions/" + url.PathEscape(session) + "/end"
}

// PersonPath is the page of one user.
func PersonPath(uid string) string { return PathPeople + "/" + url.PathEscape(uid) }

// PersonActionPath is where a change of one user posts to: role, access,
// password, second-factor or sessions/end.
func PersonActionPath(uid, action string) string { return PersonPath(uid) + "/" + action }

// PersonSessionPath ends one session of a user.
func PersonSessionPath(uid, session string) string {
	return PersonPath(uid) + "/sessions/" + url.PathEscape(session) + "/end"
}

// PeoplePath is the list of users under a filter; query may be nil.
func PeoplePath(query url.Values) string { return withQuery(PathPeople, query) }
