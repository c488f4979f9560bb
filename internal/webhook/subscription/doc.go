// Package subscription keeps what partners want to hear of and how: endpoint, events,
// merchants, headers and secret of each subscription, and every version that was in
// force (specification section 5).
//
//	active <----> failing
//	  ^  \          |
//	  |   v         v
//	  +--> paused <-+       each of them ----> deleted
//
// A failing subscription is still sent to; its health moves it there and back, and may
// pause it. Whatever its state, one whose secret or headers do not open is stopped:
// its deliveries wait until the key is back or the values are given again.
//
// A stored secret value never moves to another scheme, host or port, where anyone who
// changes the address might read it (see SameOrigin).
package subscription
