// Package bulk re-sends many deliveries: a draft selects and plans them, confirming it
// freezes the set, and workers send it at a pace that leaves capacity for new events.
//
// The transaction that holds the row of a bulk re-send works it: it turns waiting items
// into new deliveries, each item and its delivery in one statement, as many as the pace
// allows. [State] and [ItemState] define the states.
package bulk
