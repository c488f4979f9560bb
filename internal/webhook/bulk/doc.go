// Package bulk sends many deliveries again: a draft chooses and plans them, confirming
// it freezes the set, and workers send it at a pace that leaves room for new events.
//
// What holds the row of a bulk re-send works: it turns waiting items into new
// deliveries, an item and its delivery in one statement, as many as the pace allows.
// [State] and [ItemState] have the states.
package bulk
