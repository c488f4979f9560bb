package views

import "net/url"

// SectionRequests is the log of the partners' requests in the rail.
const SectionRequests Section = "requests"

// Route patterns of the log of requests.
const (
	PathRequests    = "/console/requests"
	PathRequest     = "/console/requests/:uid"
	PathRequestsCSV = "/console/requests.csv"
)

// RequestsPath is the log of requests under a filter; query may be nil.
func RequestsPath(query url.Values) string { return withQuery(PathRequests, query) }

// RequestsOf is the log of requests filtered by one parameter.
func RequestsOf(name, value string) string { return RequestsPath(url.Values{name: {value}}) }

// RequestPath is the page of one request.
func RequestPath(uid string) string { return PathRequests + "/" + url.PathEscape(uid) }
