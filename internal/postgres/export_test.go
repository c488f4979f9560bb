package postgres

import "time"

// WithStatementLife sets how long statements are kept.
func WithStatementLife(life time.Duration) Option {
	return func(o *options) { o.statementLife = life }
}
