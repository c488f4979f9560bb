package views

import "net/url"

// Route patterns of the console, shared by links here and by the route table.
const (
	PathHome           = "/console"
	PathSignIn         = "/console/sign-in"
	PathSignOut        = "/console/sign-out"
	PathPreferences    = "/console/preferences"
	PathDeliveries     = "/console/deliveries"
	PathDeliveriesLive = "/console/deliveries/live"
	PathDelivery       = "/console/deliveries/:uid"
	PathDeliveryLive   = "/console/deliveries/:uid/live"
	PathResend         = "/console/deliveries/:uid/resend"
	PathSubscriptions  = "/console/subscriptions"
	PathDocs           = "/docs"
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

func withQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}
