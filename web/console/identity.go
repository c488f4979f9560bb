package console

import "slices"

// identityRoutes lists what is about who works with the console and what they
// did.
func (c *Console) identityRoutes() []Route {
	return nil
}
