package main

import (
	"drawbridge/internal/app"
	"drawbridge/internal/demo"
	"drawbridge/internal/doctor"
)

// What the tests call the parts of other packages.
type (
	demoJSON    = demo.Data
	demoUser    = demo.User
	demoLoan    = demo.Loan
	demoClient  = demo.Client
	restoreJSON = app.Held
	checkup     = doctor.Checkup
)

const (
	demoPassword   = demo.Password
	drainTimeout   = app.DrainTimeout
	findingOK      = doctor.OK
	findingWarning = doctor.Warning
	findingFailed  = doctor.Failed
	findingSkipped = doctor.Skipped
)

var demoUsers = demo.Users
