// Package paths holds the console's addresses: the patterns of the route table, and links
// made from them.
package paths

import (
	"net/url"
	"strconv"
	"strings"
)

// The first page, and searches.
const (
	Home       = "/console"
	HomeLive   = "/console/overview/live"
	Search     = "/console/search"
	Why        = "/console/why"
	SavedViews = "/console/saved-views"
	Docs       = "/docs"
)

// Sign-in and the user's own account.
const (
	SignIn         = "/console/sign-in"
	SignInCode     = "/console/sign-in/code"
	SignInProvider = "/console/sign-in/provider"
	SignInReturn   = "/console/sign-in/provider/return"
	SignOut        = "/console/sign-out"
	Preferences    = "/console/preferences"
	Here           = "/console/here"
	Pick           = "/console/pick/:kind"
	Account        = "/console/account"
	Confirm        = "/console/account/confirm"
	Password       = "/console/account/password"
	SecondFactor   = "/console/account/second-factor"
	SecondFactorQR = "/console/account/second-factor/picture"
	SecondBegin    = "/console/account/second-factor/begin"
	SecondOff      = "/console/account/second-factor/off"
	RecoveryCodes  = "/console/account/recovery-codes"
	SessionEnd     = "/console/account/sessions/:session/end"
	SessionsEnd    = "/console/account/sessions/end"
)

// Deliveries.
const (
	Deliveries       = "/console/deliveries"
	DeliveriesLive   = "/console/deliveries/live"
	DeliveriesCSV    = "/console/deliveries/csv"
	DeliveriesCancel = "/console/deliveries/cancel"
	Delivery         = "/console/deliveries/:uid"
	DeliveryLive     = "/console/deliveries/:uid/live"
	Resend           = "/console/deliveries/:uid/resend"
	Doctor           = "/console/signature-doctor"
	Failures         = "/console/subscriptions/:uid/failures"
)

// Events.
const (
	Events    = "/console/events"
	EventsCSV = "/console/events/csv"
	Event     = "/console/events/:uid"
)

// Bulk re-sends.
const (
	Bulks       = "/console/bulk-resends"
	BulkNew     = "/console/bulk-resends/new"
	Bulk        = "/console/bulk-resends/:uid"
	BulkLive    = "/console/bulk-resends/:uid/live"
	BulkItems   = "/console/bulk-resends/:uid/items.csv"
	BulkOptions = "/console/bulk-resends/:uid/options"
	BulkConfirm = "/console/bulk-resends/:uid/confirm"
	BulkPause   = "/console/bulk-resends/:uid/pause"
	BulkResume  = "/console/bulk-resends/:uid/resume"
	BulkCancel  = "/console/bulk-resends/:uid/cancel"
)

// Subscriptions.
const (
	Subscriptions       = "/console/subscriptions"
	SubscriptionNew     = "/console/subscriptions/new"
	SubscriptionCheck   = "/console/subscriptions/check"
	Subscription        = "/console/subscriptions/:uid"
	SubscriptionLive    = "/console/subscriptions/:uid/live"
	SubscriptionEdit    = "/console/subscriptions/:uid/edit"
	SubscriptionTest    = "/console/subscriptions/:uid/test"
	SubscriptionResult  = "/console/subscriptions/:uid/test/:delivery"
	SubscriptionOutcome = "/console/subscriptions/:uid/test/:delivery/live"
	SubscriptionPause   = "/console/subscriptions/:uid/pause"
	SubscriptionResume  = "/console/subscriptions/:uid/resume"
	SubscriptionRotate  = "/console/subscriptions/:uid/rotate"
	SubscriptionCompare = "/console/subscriptions/:uid/compare"
	SubscriptionRestore = "/console/subscriptions/:uid/restore"
	SubscriptionDelete  = "/console/subscriptions/:uid/delete"
)

// Applications, loans and products.
const (
	Applications      = "/console/applications"
	ApplicationsCSV   = "/console/applications/csv"
	ApplicationNew    = "/console/applications/new"
	Application       = "/console/applications/:uid"
	ApplicationChange = "/console/applications/:uid/change/:change"
	LegalHold         = "/console/applications/:uid/hold"
	Document          = "/console/applications/:uid/files/:file"
	Loans             = "/console/loans"
	LoansCSV          = "/console/loans/csv"
	Desk              = "/console/draws"
	DeskCSV           = "/console/draws/csv"
	Products          = "/console/products"
	ProductNew        = "/console/products/new"
	ProductActive     = "/console/products/:uid/active"
	ProductOverdue    = "/console/products/:uid/overdue"
)

// E-mails.
const (
	Emails       = "/console/emails"
	EmailsCSV    = "/console/emails/csv"
	EmailsResend = "/console/emails/resend"
	Email        = "/console/emails/:uid"
	EmailBody    = "/console/emails/:uid/body"
	EmailSource  = "/console/emails/:uid/source"
	EmailResend  = "/console/emails/:uid/resend"
	EmailSamples = "/console/email-samples"
	EmailSample  = "/console/email-samples/:name"
	MailSettings = "/console/settings/mail"
)

// Partners, merchants, clients and their requests.
const (
	Partners       = "/console/partners"
	PartnerNew     = "/console/partners/new"
	Partner        = "/console/partners/:uid"
	PartnerRename  = "/console/partners/:uid/rename"
	PartnerContact = "/console/partners/:uid/contact"
	MerchantNew    = "/console/partners/:uid/merchants/new"
	ClientNew      = "/console/partners/:uid/clients/new"
	Merchants      = "/console/merchants"
	Merchant       = "/console/merchants/:uid"
	MerchantRename = "/console/merchants/:uid/rename"
	Statements     = "/console/statements"
	Statement      = "/console/merchants/:uid/statements/:date"
	StatementFile  = "/console/merchants/:uid/statements/:date/file"
	Clients        = "/console/clients"
	Client         = "/console/clients/:id"
	ClientRotate   = "/console/clients/:id/rotate"
	ClientRate     = "/console/clients/:id/rate"
	ClientRevoke   = "/console/clients/:id/revoke"
	Lender         = "/console/lender"
	LenderNew      = "/console/lender/new"
	LenderClient   = "/console/lender/:id"
	LenderRotate   = "/console/lender/:id/rotate"
	LenderRate     = "/console/lender/:id/rate"
	LenderRevoke   = "/console/lender/:id/revoke"
	Requests       = "/console/requests"
	RequestsCSV    = "/console/requests/csv"
	Request        = "/console/requests/:uid"
)

// Operations.
const (
	Alerts            = "/console/attention"
	Alert             = "/console/attention/:uid"
	Audit             = "/console/audit"
	AuditCSV          = "/console/audit.csv"
	AuditEntry        = "/console/audit/:entry"
	Queues            = "/console/queues"
	QueueAct          = "/console/queues/:queue/:act"
	JobConsole        = "/console/queues/river"
	JobConsoles       = "/console/queues/river/*"
	System            = "/console/system"
	Settings          = "/console/settings"
	SettingsSignIn    = "/console/settings/sign-in"
	SettingsRetention = "/console/settings/retention"
	SettingsHealth    = "/console/settings/health"
)

// Development.
const (
	Receiver          = "/console/dev/receiver"
	ReceiverLive      = "/console/dev/receiver/live"
	ReceiverSubscribe = "/console/dev/receiver/subscribe"
	ReceiverSecret    = "/console/dev/receiver/secret" //nolint:gosec // a path
	ReceiverClear     = "/console/dev/receiver/clear"
	Mailbox           = "/console/dev/mailbox"
)

// The console's users.
const (
	People         = "/console/people"
	PersonNew      = "/console/people/new"
	Person         = "/console/people/:uid"
	PersonRole     = "/console/people/:uid/role"
	PersonAccess   = "/console/people/:uid/access"
	PersonPassword = "/console/people/:uid/password"
	PersonFactor   = "/console/people/:uid/second-factor"
	PersonSessions = "/console/people/:uid/sessions/end"
	PersonSession  = "/console/people/:uid/sessions/:session/end"
)

// To returns a pattern with its ":name" parts replaced by params, in order. Params are
// escaped; there must be one per part.
func To(pattern string, params ...string) string {
	parts := strings.Split(pattern, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, ":") {
			parts[i] = url.PathEscape(params[0])
			params = params[1:]
		}
	}
	return strings.Join(parts, "/")
}

// ToID is To for a pattern with one part, a number.
func ToID(pattern string, id int64) string { return To(pattern, strconv.FormatInt(id, 10)) }

// With returns a path with a query, which may be nil or empty.
func With(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// Where returns a path with a query of name and value pairs.
func Where(path string, pairs ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	return With(path, query)
}

// Within is the place on an application's page of a thing, such as a draw, by number or id.
func Within(application, thing, key string) string {
	return Where(To(Application, application), thing, key) + "#" + thing + "-" + key
}

// SubscriptionTab is one tab of a subscription's page.
func SubscriptionTab(uid, tab string) string { return Where(To(Subscription, uid), "tab", tab) }

// JobsOf is the list, in River's own console, of the jobs in a state and a queue, either of
// which may be empty.
func JobsOf(state, queue string) string {
	query := url.Values{}
	if state != "" {
		query.Set("state", state)
	}
	if queue != "" {
		query.Set("queue", queue)
	}
	return With(JobConsole+"/jobs", query)
}
