package service

import (
	"net/http"
	"strings"
	"testing"

	"drawbridge/cmd/e2e/e2etest"
)

// TestAuditListNamesTheLendersSystem: a system's actions through the lender API are found by its
// name in the log, which distinguishes it from another system of the same name.
func TestAuditListNamesTheLendersSystem(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	s := w.Serve("--roles", "api")
	made := map[string]string{} // the task of each system, by the system's name in the log
	for _, title := range []string{"Invoice", "Permit"} {
		var system e2etest.DemoClient
		w.JSON(&system, "client", "create", "--lender", "--name", "payments", "--scope", "tasks")
		as := data
		as.Partners = []e2etest.DemoPartner{{Clients: []e2etest.DemoClient{system}}}
		e2etest.Send(t, as, http.MethodPost,
			s.URL+"/api/lender/v1/applications/"+data.Loans[0].UID.String()+"/tasks",
			map[string]string{"title": title})
		made["payments ("+system.ID+")"] = title
	}
	for actor, title := range made {
		var log struct {
			Entries []struct {
				Actor, Action string
				After         struct{ Name string }
			}
		}
		w.JSON(&log, "audit", "list", "--actor", actor)
		if len(log.Entries) != 1 || log.Entries[0].Actor != actor ||
			log.Entries[0].Action != "task.create" || log.Entries[0].After.Name != title {
			t.Errorf("%s did %+v", actor, log.Entries)
		}
		text := w.Run("", "audit", "list", "--action", "task.create").Stdout
		if !strings.Contains(text, actor) {
			t.Errorf("%q does not name %s", text, actor)
		}
	}
}
