package applications

// anchored leads to a part of a page; an empty address stays empty.
func anchored(href, id string) string {
	if href == "" {
		return ""
	}
	return href + "#" + id
}
