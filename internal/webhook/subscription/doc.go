// Package subscription stores which events partners want and how to send them: endpoint,
// events, merchants, headers and secret of each subscription, and every version that was
// in force (specification section 5).
//
//	active <----> failing
//	  ^  \          |
//	  |   v         v
//	  +--> paused <-+       each of them ----> deleted
//
// A failing subscription is still sent to; its health moves it to failing and back, and may
// pause it. Whatever its state, a subscription whose secret or headers cannot be decrypted
// is stopped: its deliveries wait until the key is back or the values are set again.
//
// A stored secret value never moves to another scheme, host or port, where whoever
// changed the address might read it (see SameOrigin).
package subscription
