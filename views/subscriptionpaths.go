package views

import "net/url"

// Route patterns of the subscriptions' pages.
const (
	PathSubscriptionNew     = "/console/subscriptions/new"
	PathSubscriptionCheck   = "/console/subscriptions/check"
	PathSubscription        = "/console/subscriptions/:uid"
	PathSubscriptionLive    = "/console/subscriptions/:uid/live"
	PathSubscriptionEdit    = "/console/subscriptions/:uid/edit"
	PathSubscriptionTest    = "/console/subscriptions/:uid/test"
	PathSubscriptionResult  = "/console/subscriptions/:uid/test/:delivery"
	PathSubscriptionOutcome = "/console/subscriptions/:uid/test/:delivery/live"
	PathSubscriptionPause   = "/console/subscriptions/:uid/pause"
	PathSubscriptionResume  = "/console/subscriptions/:uid/resume"
	PathSubscriptionRotate  = "/console/subscriptions/:uid/rotate"
	PathSubscriptionCompare = "/console/subscriptions/:uid/compare"
	PathSubscriptionRestore = "/console/subscriptions/:uid/restore"
	PathSubscriptionDelete  = "/console/subscriptions/:uid/delete"
)

// The tabs of a subscription's page, as the address names them.
const (
	TabActivity      = "activity"
	TabConfiguration = "configuration"
	TabSecret        = "secret"
	TabHealth        = "health"
	TabVersions      = "versions"
)

// SubscriptionsPath is the list under a filter; query may be nil.
func SubscriptionsPath(query url.Values) string { return withQuery(PathSubscriptions, query) }

// SubscriptionPath is the page of one subscription.
func SubscriptionPath(uid string) string { return PathSubscriptions + "/" + url.PathEscape(uid) }

// SubscriptionTab is one tab of a subscription's page.
func SubscriptionTab(uid, tab string) string {
	return withQuery(SubscriptionPath(uid), url.Values{"tab": {tab}})
}

// SubscriptionAct is the page of an action on a subscription, such as "pause",
// and where its form posts to.
func SubscriptionAct(uid, action string) string { return SubscriptionPath(uid) + "/" + action }

// SubscriptionResultPath shows what became of a test event.
func SubscriptionResultPath(uid, delivery string) string {
	return SubscriptionAct(uid, "test") + "/" + url.PathEscape(delivery)
}

// NewSubscriptionPath is the form for a new subscription of a partner.
func NewSubscriptionPath(partner string) string {
	return withQuery(PathSubscriptionNew, url.Values{"partner": {partner}})
}

// RestorePath is the form that brings back an earlier version.
func RestorePath(uid, version string) string {
	return withQuery(SubscriptionAct(uid, "restore"), url.Values{"version": {version}})
}

// SubscriptionNewPath is the form for a new subscription of a partner.
func SubscriptionNewPath(partner string) string {
	return withQuery(PathSubscriptionNew, url.Values{"partner": {partner}})
}
