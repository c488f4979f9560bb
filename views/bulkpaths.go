package views

import "net/url"

// Route patterns of the bulk re-sends and the events.
const (
	PathBulks       = "/console/bulk-resends"
	PathBulkNew     = PathBulkResendNew
	PathBulk        = "/console/bulk-resends/:uid"
	PathBulkLive    = "/console/bulk-resends/:uid/live"
	PathBulkItems   = "/console/bulk-resends/:uid/items.csv"
	PathBulkOptions = "/console/bulk-resends/:uid/options"
	PathBulkConfirm = "/console/bulk-resends/:uid/confirm"
	PathBulkPause   = "/console/bulk-resends/:uid/pause"
	PathBulkResume  = "/console/bulk-resends/:uid/resume"
	PathBulkCancel  = "/console/bulk-resends/:uid/cancel"
	PathEvents      = "/console/events"
	PathEventsCSV   = "/console/events/csv"
	PathEvent       = "/console/events/:uid"
)

// BulksPath is the list of bulk re-sends under a filter; query may be nil.
func BulksPath(query url.Values) string { return withQuery(PathBulks, query) }

// BulkPath is the page of one bulk re-send under a filter of its results.
func BulkPath(uid string, query url.Values) string {
	return withQuery(PathBulks+"/"+url.PathEscape(uid), query)
}

// BulkAct is where an action on a bulk re-send is posted to, and its streams and
// files are got from.
func BulkAct(uid, action string) string { return BulkPath(uid, nil) + "/" + action }

// EventsPath is the list of events under a filter; query may be nil.
func EventsPath(query url.Values) string { return withQuery(PathEvents, query) }

// EventPath is the page of one event.
func EventPath(uid string) string { return PathEvents + "/" + url.PathEscape(uid) }

// BulkStartPath is the form that recovers what failed ("recover") or replays what
// was never sent ("replay") to a subscription.
func BulkStartPath(kind, subscription string) string {
	return withQuery(PathBulkNew, url.Values{"kind": {kind}, "subscription": {subscription}})
}
