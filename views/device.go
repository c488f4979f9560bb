package views

import "strings"

// Device names a browser and its system as people call them, as far as the
// browser's own description tells: "Firefox on Linux".
func Device(agent string) string {
	browser := firstOf(agent, [][2]string{
		{"Edg/", "Edge"},
		{"OPR/", "Opera"},
		{"Firefox/", "Firefox"},
		{"HeadlessChrome", "Chromium"},
		{"Chrome/", "Chrome"},
		{"Safari/", "Safari"},
		{"curl/", "curl"},
	})
	system := firstOf(agent, [][2]string{
		{"iPhone", "iPhone"},
		{"iPad", "iPad"},
		{"Android", "Android"},
		{"Windows", "Windows"},
		{"Mac OS X", "macOS"},
		{"CrOS", "ChromeOS"},
		{"Linux", "Linux"},
	})
	switch {
	case browser != "" && system != "":
		return browser + " on " + system
	case browser+system != "":
		return browser + system
	case agent == "":
		return "A device that does not say what it is"
	}
	return agent
}

// firstOf returns the name of the first mark that text contains.
func firstOf(text string, names [][2]string) string {
	for _, pair := range names {
		if strings.Contains(text, pair[0]) {
			return pair[1]
		}
	}
	return ""
}
