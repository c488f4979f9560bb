package views

import "net/url"

// Route patterns of the forms that change an application.
const (
	PathApplicationNew    = "/console/applications/new"
	PathApplicationChange = "/console/applications/:uid/change/:change"
)

// ApplicationsOf is the list of applications filtered by one parameter.
func ApplicationsOf(name, value string) string {
	return ApplicationsPath(url.Values{name: {value}})
}

// ApplicationChangePath is the form of one change; query names what exactly.
func ApplicationChangePath(uid, change string, query url.Values) string {
	return withQuery(ApplicationPath(uid)+"/change/"+url.PathEscape(change), query)
}

// emptyAction is where an empty screen leads whoever may go there.
func emptyAction(f Frame, path string) string {
	if f.Allows("operator") {
		return path
	}
	return ""
}

// anchored leads to a part of a page; an empty address stays empty.
func anchored(href, id string) string {
	if href == "" {
		return ""
	}
	return href + "#" + id
}
