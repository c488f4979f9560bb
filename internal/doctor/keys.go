package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"drawbridge/internal/app"
	"drawbridge/internal/reencrypt"
)

// examineKeys decrypts every value with the configured keys, and reports the worst result.
func examineKeys(ctx context.Context, s *app.Services) ([]Checkup, error) {
	verified, err := (&reencrypt.Service{DB: s.DB, Keys: s.Keys}).Verify(ctx)
	if err != nil {
		return nil, err
	}
	current := s.Keys.Current()
	found := Checkup{
		Name: "keys", Finding: OK,
		Detail: fmt.Sprintf("Nothing is encrypted yet; the key is %s.", current),
	}
	if len(verified.Opened) > 0 {
		found.Detail = fmt.Sprintf("Every encrypted value can be decrypted: %s; new ones use %s.",
			perKey(verified.Opened), current)
	}
	stale := maps.Clone(verified.Opened)
	delete(stale, current)
	switch {
	case len(verified.Unknown) > 0:
		found.Finding = Failed
		found.Detail = fmt.Sprintf("Values are encrypted with keys that DRAWBRIDGE_SECRETS_KEY lacks: "+
			"%s. Others can be decrypted: %s.", perKey(verified.Unknown), perKey(verified.Opened))
		found.Remedy = "Put those keys back after the first one, and restart every process; " +
			"drawbridge secrets rotate-key then replaces them."
	case verified.BrokenCount > 0:
		found.Finding = Failed
		found.Detail = fmt.Sprintf("%d values are damaged or were moved: %s. Others can be decrypted: "+
			"%s.", verified.BrokenCount, strings.Join(verified.Broken, ", "), perKey(verified.Opened))
		found.Remedy = "Give each such subscription a new secret and its headers again " +
			"(drawbridge subscription update), and have the user set up the second factor again."
	case len(stale) > 0:
		found.Finding = Warning
		found.Remedy = "Once " + current + " is the first key of every process, " +
			"run drawbridge secrets rotate-key; then older keys can be removed."
	}
	return []Checkup{found}, nil
}

// namedStopped is the maximum number of stopped subscriptions that are named.
const namedStopped = 5

// examineStopped looks for subscriptions that a process does not send to because its keys cannot
// decrypt what is stored, whether or not the keys here can.
func examineStopped(ctx context.Context, s *app.Services) ([]Checkup, error) {
	const name = "stopped"
	uids, err := s.Webhooks.Subscriptions.Stopped(ctx)
	if err != nil {
		return nil, err
	}
	if len(uids) == 0 {
		return []Checkup{{
			Name: name, Finding: OK, Detail: "No subscription is stopped because a key is missing.",
		}}, nil
	}
	var named []string
	remedy := "drawbridge subscription show " + uids[0].String() + " says why."
	for _, uid := range uids[:min(len(uids), namedStopped)] {
		found, err := s.Webhooks.Subscriptions.Get(ctx, uid)
		if err != nil {
			return nil, err
		}
		named = append(named, uid.String())
		if found.OtherKeys() != "" {
			remedy = "The values can be decrypted here, so some process has another " +
				"DRAWBRIDGE_SECRETS_KEY; its log says 'a subscription cannot be sent to'. Give every process " +
				"the same keys and restart it; then the subscriptions resume within a minute."
		}
	}
	return []Checkup{{
		Name: name, Finding: Failed, Remedy: remedy,
		Detail: fmt.Sprintf("Nothing is sent to %d subscriptions whose secret or headers cannot be "+
			"decrypted: %s.", len(uids), strings.Join(named, ", ")),
	}}, nil
}

// perKey lists counts by key id.
func perKey(counts map[string]int) string {
	if len(counts) == 0 {
		return "none"
	}
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d by %s", counts[id], id))
	}
	return strings.Join(parts, ", ")
}

// examineDemo looks for published credentials, which are for development only.
func examineDemo(ctx context.Context, s *app.Services) ([]Checkup, error) {
	if !s.Settings.Env.Hosted() {
		return nil, nil
	}
	who, remedy, err := s.DemoAccess(ctx)
	if err != nil {
		return nil, err
	}
	found := Checkup{Name: "demo", Finding: OK, Detail: "No published credentials are in use."}
	if who != "" {
		found.Finding, found.Remedy = Failed, capital(remedy)+"."
		found.Detail = capital(who) + "; no process starts here with these settings."
	}
	return []Checkup{found}, nil
}

// examineQuarantine checks whether the database was restored and is in quarantine.
func examineQuarantine(ctx context.Context, s *app.Services) ([]Checkup, error) {
	quarantine, err := s.Quarantine(ctx)
	if err != nil {
		return nil, err
	}
	found := Checkup{Name: "restore", Finding: OK, Detail: "Nothing is held."}
	switch {
	case quarantine.Active:
		found.Finding = Failed
		found.Detail = fmt.Sprintf("Nothing has been sent since %s: %s. %d deliveries and %d e-mails "+
			"from before may have been sent already.", quarantine.Since.Format(time.RFC3339),
			*quarantine.Reason, quarantine.Deliveries, quarantine.Mails)
		found.Remedy = "Decide what happens to them: " + app.ReleaseCommand
	case quarantine.Copied:
		found.Finding = Warning
		found.Detail = "The database is a copy or was restored; the next process that starts will " +
			"hold everything."
		found.Remedy = "Start the processes, then run drawbridge restore show and decide."
	}
	return []Checkup{found}, nil
}
