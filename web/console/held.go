package console

import (
	"context"

	"drawbridge/views/operations"
)

// held is what a restored database holds, for the banner.
func (c *Console) held(ctx context.Context) (operations.Held, error) {
	state, err := c.Restored.State(ctx)
	if err != nil || !state.IsHeld() {
		return operations.Held{}, err
	}
	held := operations.Held{Since: *state.HeldAt}
	if state.Reason != nil {
		held.Reason = *state.Reason
	}
	if held.Deliveries, err = c.Webhooks.CountOpen(ctx, held.Since); err != nil {
		return operations.Held{}, err
	}
	held.Mails, err = c.Emails.CountQueued(ctx, c.DB, held.Since)
	return held, err
}
