package webhooktest

import (
	"encoding/json"
	"testing"
)

// JobRow is a row of the queue as JSON, without its number and its times.
func (h *Harness) JobRow(t *testing.T, where string) (row, args map[string]any) {
	t.Helper()
	var text []byte
	err := h.DB.GetContext(t.Context(), &text, `
		SELECT to_jsonb(j) - 'id' - 'created_at' - 'scheduled_at' FROM river_job j WHERE `+where)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &row); err != nil {
		t.Fatal(err)
	}
	args, _ = row["args"].(map[string]any)
	delete(row, "args")
	return row, args
}
