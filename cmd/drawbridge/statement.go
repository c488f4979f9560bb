package main

import (
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/calendar"
	"drawbridge/internal/postgres"
	"drawbridge/internal/statement"
)

type statementCmd struct {
	List      statementListCmd      `cmd:"" help:"List frozen statements, newest first."`
	Show      statementShowCmd      `cmd:"" help:"Print a statement, byte for byte as it was signed."`
	Keys      statementKeysCmd      `cmd:"" help:"List the public keys that verify statements."`
	RotateKey statementRotateKeyCmd `cmd:"" help:"Make a new key, which signs from now on. Former public keys stay listed; the former private key is removed."`
}

// statementJSON is a statement in a list.
type statementJSON struct {
	MerchantUID   uuid.UUID `json:"merchant_uid"`
	Date          string    `json:"date"`
	Version       int       `json:"version"`
	FrozenAt      time.Time `json:"frozen_at"`
	KeyID         string    `json:"key_id"`
	Disbursements int       `json:"disbursements"`
	Events        int       `json:"events"`
	Gross         string    `json:"gross"`
	Fee           string    `json:"fee"`
	Net           string    `json:"net"`
}

type statementListCmd struct {
	Merchant string `help:"Only those of this merchant." placeholder:"UID"`
	Date     string `help:"Only those of this business day, such as 2026-11-20." placeholder:"DAY"`
	listFlags
}

// Run lists statements.
func (cmd statementListCmd) Run(env *environment) error {
	filter := statement.Filter{}
	if cmd.Merchant != "" {
		filter.Merchants = []uuid.UUID{env.uid("--merchant", cmd.Merchant)}
	}
	if cmd.Date != "" {
		filter.Date = env.day("--date", cmd.Date).String()
	}
	item := func(s statement.Summary) statementJSON {
		return statementJSON{
			MerchantUID: s.MerchantUID, Date: s.Date(), Version: s.Version, FrozenAt: s.FrozenAt.UTC(),
			KeyID: s.KeyID, Disbursements: s.Disbursements, Events: s.Events,
			Gross: s.Gross.String(), Fee: s.Fee.String(), Net: s.Net.String(),
		}
	}
	return rowsOf("statements", item, "MERCHANT\tDAY\tVERSION\tDRAWS\tEVENTS\tNET\tFROZEN",
		func(w io.Writer, s statement.Summary) {
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%s\n", s.MerchantUID, s.Date(), s.Version,
				s.Disbursements, s.Events, s.Net, s.FrozenAt.UTC().Format(time.RFC3339))
		}).page(env, cmd.listFlags,
		func(s *app.Services, page postgres.Paging) ([]statement.Summary, postgres.Cursor, error) {
			return s.Statements.List(env.ctx, filter, page)
		})
}

// day reads a date.
func (env *environment) day(what, text string) calendar.Date {
	day, err := calendar.ParseDate(text)
	if err != nil {
		env.refusef("%s is %q; it must be a day such as 2026-11-20", what, text)
	}
	return day
}

type statementShowCmd struct {
	Merchant string `arg:"" help:"Merchant." placeholder:"UID"`
	Date     string `arg:"" help:"Business day, such as 2026-11-20." placeholder:"DAY"`
	Version  int    `help:"Version to print; default: the newest." placeholder:"N"`
	CSV      bool   `name:"csv" help:"Print the CSV form."`
	JSON     bool   `name:"json" help:"Print the JSON form, which is the default."`
}

// Run prints the bytes of a statement.
func (cmd statementShowCmd) Run(env *environment) error {
	wanted := statement.Query{
		MerchantUID: env.uid("the merchant", cmd.Merchant), Date: env.day("the day", cmd.Date),
		Version: cmd.Version, Format: statement.JSON,
	}
	if cmd.CSV {
		wanted.Format = statement.CSV
	}
	return env.withServices(func(s *app.Services) error {
		file, err := s.Statements.Read(env.ctx, wanted)
		if err != nil {
			return err
		}
		_, err = env.stdout.Write(file.Content)
		return err
	})
}

type statementKeysCmd struct{ jsonFlag }

func printKey(w io.Writer, key statement.Key) {
	until := "signs"
	if key.Until != nil {
		until = key.Until.Format(time.RFC3339)
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", key.ID, key.Algorithm, key.From.Format(time.RFC3339), until)
}

// Run lists the keys.
func (cmd statementKeysCmd) Run(env *environment) error {
	return rowsOf("keys", itself, "KEY\tALGORITHM\tFROM\tUNTIL", printKey).all(env, cmd.JSON,
		func(s *app.Services) ([]statement.Key, error) { return s.Statements.PublicKeys(env.ctx) })
}

type statementRotateKeyCmd struct{ jsonFlag }

// Run makes a new key.
func (cmd statementRotateKeyCmd) Run(env *environment) error {
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		made, before, err := s.Statements.RotateKey(env.ctx, tx)
		recorded := entry("statement.rotate_key", made.ID, "", map[string]string{"kid": made.ID})
		recorded.SubjectKind, recorded.Before = "statement_key", map[string]string{"kid": before}
		return did(recorded, output{made, aligned(func(w io.Writer) { printKey(w, made) })}), err
	})
}
