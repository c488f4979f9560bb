package bulk

import (
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
)

// Service owns bulk re-sends.
type Service struct {
	DB   *postgres.DB
	Jobs delivery.Inserter
}
