package views

import "net/url"

// Route patterns of the dashboard, of what needs attention, and of the system.
const (
	PathHomeLive      = "/console/overview/live"
	PathAttention     = "/console/attention"
	PathAttentionItem = "/console/attention/:uid"
	PathSystem        = "/console/system"
)

// AttentionPath is the list of what needs attention under a filter; query may
// be nil.
func AttentionPath(query url.Values) string { return withQuery(PathAttention, query) }

// AttentionItemPath is the page of one item, and where its actions post to.
func AttentionItemPath(uid string) string { return PathAttention + "/" + url.PathEscape(uid) }
