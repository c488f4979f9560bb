package views

import "net/url"

// Route patterns of the console, shared by links here and by the route table.
const (
	PathHome             = "/console"
	PathSignIn           = "/console/sign-in"
	PathSignOut          = "/console/sign-out"
	PathPreferences      = "/console/preferences"
	PathDeliveries       = "/console/deliveries"
	PathDeliveriesLive   = "/console/deliveries/live"
	PathBulkResendNew    = "/console/bulk-resends/new"
	PathDeliveriesCSV    = "/console/deliveries/csv"
	PathDeliveriesCancel = "/console/deliveries/cancel"
	PathSavedViews       = "/console/saved-views"
	PathDelivery         = "/console/deliveries/:uid"
	PathDeliveryLive     = "/console/deliveries/:uid/live"
	PathResend           = "/console/deliveries/:uid/resend"
	PathSubscriptions    = "/console/subscriptions"
	PathEmails           = "/console/emails"
	PathEmailsCSV        = "/console/emails/csv"
	PathEmailsResend     = "/console/emails/resend"
	PathEmail            = "/console/emails/:uid"
	PathEmailBody        = "/console/emails/:uid/body"
	PathEmailSource      = "/console/emails/:uid/source"
	PathEmailResend      = "/console/emails/:uid/resend"
	PathEmailSamples     = "/console/email-samples"
	PathEmailSample      = "/console/email-samples/:name"
	PathMailSettings     = "/console/settings/mail"
	PathDocs             = "/docs"
)

// DeliveryPath is the page of one delivery.
func DeliveryPath(uid string) string { return PathDeliveries + "/" + url.PathEscape(uid) }

// DeliveryLivePath is the event stream of one delivery's page.
func DeliveryLivePath(uid string) string { return DeliveryPath(uid) + "/live" }

// ResendPath is the form that re-sends one delivery, and where it posts to.
func ResendPath(uid string) string { return DeliveryPath(uid) + "/resend" }

// DeliveriesPath is the delivery list under a filter; query may be nil.
func DeliveriesPath(query url.Values) string { return withQuery(PathDeliveries, query) }

// DeliveriesLivePath is the event stream of the delivery list under a filter.
func DeliveriesLivePath(query url.Values) string { return withQuery(PathDeliveriesLive, query) }

// DeliveriesOf is the delivery list filtered by one parameter.
func DeliveriesOf(name, value string) string {
	return DeliveriesPath(url.Values{name: {value}})
}

// EmailPath is the page of one e-mail.
func EmailPath(uid string) string { return PathEmails + "/" + url.PathEscape(uid) }

// EmailBodyPath is the rendered body of one e-mail, for a sandboxed frame.
func EmailBodyPath(uid string) string { return EmailPath(uid) + "/body" }

// EmailSourcePath is one e-mail as it goes onto the wire, to download.
func EmailSourcePath(uid string) string { return EmailPath(uid) + "/source" }

// EmailResendPath is the form that re-sends one e-mail, and where it posts to.
func EmailResendPath(uid string) string { return EmailPath(uid) + "/resend" }

// EmailsPath is the e-mail list under a filter; query may be nil.
func EmailsPath(query url.Values) string { return withQuery(PathEmails, query) }

// EmailsOf is the e-mail list filtered by one parameter.
func EmailsOf(name, value string) string { return EmailsPath(url.Values{name: {value}}) }

// EmailSamplePath is the rendered body of a sample, for a sandboxed frame.
func EmailSamplePath(name string) string { return PathEmailSamples + "/" + url.PathEscape(name) }

// EmailSamplesOf is the page that shows one sample.
func EmailSamplesOf(name string) string {
	return withQuery(PathEmailSamples, url.Values{"mail": {name}})
}

func withQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}
