// Package health sums up the outcomes of sending to subscriptions, judges which subscriptions
// are failing, probes their endpoints between events, and reads the data behind alerts.
//
// A trigger notes each attempt's outcome in a small table. [Service.Tally] moves the
// notes into hourly summaries and into each subscription's run of failures, in one
// transaction, so that each counts once however late it comes. [Service.Judge] changes a
// subscription's state according to that run:
//
//	          every attempt failed for the window,
//	          and enough events had a failed attempt
//	active ------------------------------------> failing (or paused, if it is set to pause)
//	   ^                                            |
//	   +---------------- first success -------------+
package health
