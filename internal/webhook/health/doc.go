// Package health sums up how the sending to subscriptions goes, judges which of them
// fail, probes their endpoints between events, and reads what alerts are made of.
//
// A trigger notes each attempt's outcome in a small table. [Service.Tally] takes the
// notes out and adds them to hourly summaries and to each subscription's run of
// failures, in one transaction, so that each counts once however late it comes.
// [Service.Judge] moves a subscription by that run:
//
//	          every attempt failed for the window,
//	          and of enough events
//	active ------------------------------------> failing (or paused, if it says so)
//	   ^                                            |
//	   +---------------- first success -------------+
package health
