package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

type subscriptionVersionsCmd struct {
	UID  string `arg:"" help:"Subscription."`
	From int    `help:"Compare from this version ..." placeholder:"N"`
	To   int    `help:"... to this one." placeholder:"N"`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// versionJSON is a version as commands print it, secret header values left out.
type versionJSON struct {
	Number    int          `json:"version"`
	Change    string       `json:"change"`
	ChangedBy string       `json:"changed_by"`
	ChangedAt time.Time    `json:"changed_at"`
	Reason    string       `json:"reason"`
	URL       string       `json:"url"`
	Auth      sender.Auth  `json:"auth"`
	Events    []string     `json:"events"`
	Merchants []uuid.UUID  `json:"merchants"`
	Headers   []headerJSON `json:"headers"`
	State     *string      `json:"state"`
}

func newVersionJSON(v subscription.Version) versionJSON {
	return versionJSON{
		Number: v.Number, Change: v.Change, ChangedBy: v.ChangedBy, ChangedAt: v.ChangedAt.UTC(),
		Reason: v.Reason, URL: v.URL, Auth: v.Auth, Events: v.Events, Merchants: v.Merchants,
		Headers: newHeadersJSON(v.Headers), State: orNull(string(v.State)),
	}
}

// changeJSON is one difference between two versions.
type changeJSON struct {
	Setting subscription.Setting `json:"setting"`
	Name    *string              `json:"name"`
	Before  *string              `json:"before"`
	After   *string              `json:"after"`
	Masked  bool                 `json:"masked"`
}

// Run lists versions or compares two.
func (cmd subscriptionVersionsCmd) Run(env *environment) error {
	uid := env.uid("the subscription", cmd.UID)
	if (cmd.From == 0) != (cmd.To == 0) || cmd.From < 0 || cmd.To < 0 {
		env.refusef("--from and --to must be given together, as version numbers")
	}
	if cmd.From > 0 {
		return cmd.compare(env, uid)
	}
	return rowsOf("versions", newVersionJSON, "VERSION\tCHANGED\tBY\tCHANGE\tREASON",
		func(w io.Writer, v subscription.Version) {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", v.Number,
				v.ChangedAt.UTC().Format(time.RFC3339), v.ChangedBy, v.Change, v.Reason)
		}).all(env, cmd.JSON, func(s *app.Services) ([]subscription.Version, error) {
		return s.Webhooks.Subscriptions.Versions(env.ctx, uid)
	})
}

func (cmd subscriptionVersionsCmd) compare(env *environment, uid uuid.UUID) error {
	return env.show(cmd.JSON, func(s *app.Services) (output, error) {
		diff, err := s.Webhooks.Subscriptions.CompareVersions(env.ctx, uid, cmd.From, cmd.To)
		changes := make([]changeJSON, 0, len(diff.Changes))
		for _, c := range diff.Changes {
			changes = append(changes, changeJSON{
				Setting: c.Setting, Name: orNull(c.Name), Before: orNull(c.Before),
				After: orNull(c.After), Masked: c.Masked,
			})
		}
		document := map[string]any{"from": diff.From, "to": diff.To, "changes": changes}
		return output{document, func(w io.Writer) {
			if len(diff.Changes) == 0 {
				fmt.Fprintln(w, "the versions do not differ")
			}
			for _, c := range diff.Changes {
				if c.Setting == subscription.SettingSecret {
					fmt.Fprintln(w, "secret: changed")
					continue
				}
				fmt.Fprintf(w, "%s: %s -> %s\n", strings.TrimSpace(string(c.Setting)+" "+c.Name),
					cmp.Or(c.Before, "none"), cmp.Or(c.After, "none"))
			}
		}}, err
	})
}

type subscriptionRestoreCmd struct {
	UID     string `arg:"" help:"Subscription."`
	Version int    `required:"" help:"Version whose settings to restore." placeholder:"N"`
	Reason  string `help:"Why, for the record." placeholder:"TEXT"`
	JSON    bool   `name:"json" help:"Print one JSON document."`

	Secret       string   `help:"Signing secret or bearer token to put in force, or - to read it from the standard input. A token must be given again if the version has another scheme, host or port." placeholder:"TEXT"`
	SecretHeader []string `sep:"none" help:"Value of a secret header of the version, given again, repeatable; required in the same cases." placeholder:"LINE"`
	NoHeaders    bool     `help:"Leave out every custom header of the version."`
}

// Run restores a version.
func (cmd subscriptionRestoreCmd) Run(env *environment) error {
	uid := env.uid("the subscription", cmd.UID)
	if cmd.NoHeaders && len(cmd.SecretHeader) > 0 {
		env.refusef("--no-headers cannot be combined with --secret-header")
	}
	choice := subscription.Choice{
		Version: cmd.Version, Reason: cmd.Reason, NoHeaders: cmd.NoHeaders,
		Headers: subscriptionFlags{SecretHeader: cmd.SecretHeader}.headers(env),
		Secret:  env.secretFlag(cmd.Secret),
	}
	check := func(s *subscription.Service) (string, error) {
		return s.CheckVersion(env.ctx, uid, cmd.Version)
	}
	return env.changeAt(check, cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		before, err := env.lockSubscription(s, tx, uid)
		if err != nil {
			return done{}, err
		}
		restored, err := s.Webhooks.Subscriptions.Restore(env.ctx, tx, uid, choice, cliActor)
		made := did(
			changeEntry("subscription.restore", uid.String(), cmd.Reason,
				map[string]int{"version": before.Version}, map[string]int{
					"restored": cmd.Version, "version": restored.Subscription.Version,
				}),
			subscriptionOutput(restored.Subscription, restored.Secret),
		)
		made.notes = rotationNotes(before, restored.Subscription, restored.Secret, tx.Now)
		if restored.SecretKept {
			made.notes = append(made.notes, "the secret in force was kept: versions do not include one")
		}
		return made, err
	})
}

// rotationNotes say what happened to the secrets that were in force before a change; value is the
// new secret, if there is one.
func rotationNotes(
	before, after subscription.Subscription, value secret.String, now time.Time,
) []string {
	var notes []string
	until := after.PreviousUntil
	switch {
	case value.IsZero() || before.Auth == sender.AuthNone:
	case until != nil:
		notes = append(notes, "the old secret signs alongside the new one until "+
			until.UTC().Format(time.RFC3339))
	default:
		notes = append(notes, "the old secret stopped working at once")
	}
	planned := before.PreviousUntil
	if planned != nil && now.Before(*planned) && (until == nil || !until.Equal(*planned)) {
		notes = append(notes, overlapEnded(*planned))
	}
	return notes
}

// One person may compare at most maxComparisons values in each comparisonWindow.
const (
	maxComparisons   = 20
	comparisonWindow = time.Hour
)

type subscriptionCompareSecretCmd struct {
	UID  string `arg:"" help:"Subscription."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Run compares a value from the standard input with the secrets.
func (cmd subscriptionCompareSecretCmd) Run(env *environment) error {
	uid := env.uid("the subscription", cmd.UID)
	pasted := secret.New(strings.TrimSpace(env.readSecret("value")))
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		found, err := s.Webhooks.Subscriptions.CompareSecret(env.ctx, tx, uid, pasted)
		recorded := entry("subscription.compare_secret", uid.String(), "",
			map[string]secret.Match{"match": found.Match})
		recorded.Limit, recorded.Window = maxComparisons, comparisonWindow
		return did(recorded, output{
			map[string]any{"match": found.Match, "previous_until": utc(found.PreviousUntil)},
			func(w io.Writer) {
				said := "it is neither the secret in force nor the one before it"
				switch {
				case found.Match == secret.MatchCurrent:
					said = "it is the secret in force"
				case found.Match == secret.MatchPrevious && found.PreviousEnded:
					said = "it is the previous secret, which is no longer used"
				case found.Match == secret.MatchPrevious:
					said = "it is the previous secret, which signs alongside the current one until " +
						found.PreviousUntil.UTC().Format(time.RFC3339)
				}
				fmt.Fprintln(w, said)
			},
		}), err
	})
}
