package applications

import "time"

// HoldView is a legal hold in force.
type HoldView struct {
	By, Reason string
	Since      time.Time
}
