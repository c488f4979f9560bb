package postgres

import "time"

// WithStatementLife keeps statements for so long.
func WithStatementLife(life time.Duration) Option {
	return func(o *options) { o.statementLife = life }
}
