package bulk

import (
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

// Service owns bulk re-sends.
type Service struct {
	DB   *postgres.DB
	Jobs subscription.Inserter
}
