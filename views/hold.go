package views

import (
	"strings"
	"time"
)

// PathApplicationHold asks for a legal hold on an application, or for its end.
const PathApplicationHold = "/console/applications/:uid/hold"

// ApplicationHoldPath is the form for one application.
func ApplicationHoldPath(uid string) string {
	return strings.Replace(PathApplicationHold, ":uid", uid, 1)
}

// HoldView is a legal hold in force.
type HoldView struct {
	By, Reason string
	Since      time.Time
}
