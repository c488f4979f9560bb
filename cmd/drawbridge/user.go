package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/term"

	"drawbridge/internal/app"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
)

type userCmd struct {
	Create   userCreateCmd   `cmd:"" help:"Create a console user; the password is read from stdin or prompted."`
	List     userListCmd     `cmd:"" help:"List the users."`
	Disable  userDisableCmd  `cmd:"" help:"End a user's access."`
	Password userPasswordCmd `cmd:"" help:"Set a user's password, read from stdin or prompted."`
}

// userJSON is a user as commands print it.
type userJSON struct {
	UID      uuid.UUID     `json:"user_uid"`
	Email    string        `json:"email"`
	Name     string        `json:"name"`
	Role     operator.Role `json:"role"`
	Disabled bool          `json:"disabled"`
}

func newUserJSON(user operator.User) userJSON {
	return userJSON{
		UID: user.UID, Email: user.Email, Name: user.Name, Role: user.Role,
		Disabled: user.DisabledAt != nil,
	}
}

func printUser(w io.Writer, user operator.User) {
	state := ""
	if user.DisabledAt != nil {
		state = "  disabled"
	}
	fmt.Fprintf(w, "%-40s %-9s %s%s\n", user.Email, user.Role, user.Name, state)
}

type userCreateCmd struct {
	Email string `required:"" help:"Address to sign in with." placeholder:"ADDRESS"`
	Name  string `required:"" help:"The person's name." placeholder:"TEXT"`
	Role  string `required:"" help:"admin, operator or support." placeholder:"ROLE"`

	MustChange bool `help:"Ask for another password at the first sign-in."`
	JSON       bool `name:"json" help:"Print one JSON document."`
}

// Run creates a user.
func (cmd userCreateCmd) Run(env *environment) error {
	password, err := env.readPassword()
	if err != nil {
		return err
	}
	request := operator.NewUser{
		Email: cmd.Email, Name: cmd.Name, Role: operator.Role(cmd.Role), Password: password,
		MustChange: cmd.MustChange,
	}
	return env.changeUser(cmd.JSON, "user.create",
		func(s *app.Services, tx *postgres.Tx) (operator.User, error) {
			return s.Operators.Create(env.ctx, tx, request)
		})
}

type userListCmd struct {
	JSON bool `name:"json" help:"Print one JSON document."`
}

// Run lists the users.
func (cmd userListCmd) Run(env *environment) error {
	return env.withServices(func(s *app.Services) error {
		users, _, err := s.Operators.Users(env.ctx, operator.UserFilter{})
		if err != nil {
			return err
		}
		return listing[operator.User, userJSON]{
			"users", users, newUserJSON, printUser,
		}.print(env, cmd.JSON)
	})
}

// userNamed takes the user's address as an argument or by the flag of create.
type userNamed struct {
	Address string `arg:"" optional:"" name:"email" help:"Address of the user."`
	Email   string `help:"The same by name." placeholder:"ADDRESS"`
}

func (cmd userNamed) user() (string, error) {
	if (cmd.Address == "") == (cmd.Email == "") {
		return "", usagef("name the user by one address: as an argument or by --email")
	}
	return cmp.Or(cmd.Address, cmd.Email), nil
}

type userDisableCmd struct {
	userNamed
	JSON bool `name:"json" help:"Print one JSON document."`
}

// Run disables a user.
func (cmd userDisableCmd) Run(env *environment) error {
	user, err := cmd.user()
	if err != nil {
		return err
	}
	return env.changeUser(cmd.JSON, "user.disable",
		func(s *app.Services, tx *postgres.Tx) (operator.User, error) {
			return s.Operators.Disable(env.ctx, tx, user)
		})
}

type userPasswordCmd struct {
	userNamed
	MustChange bool `help:"Ask for another password at the next sign-in."`
	JSON       bool `name:"json" help:"Print one JSON document."`
}

// Run sets a password.
func (cmd userPasswordCmd) Run(env *environment) error {
	user, err := cmd.user()
	if err != nil {
		return err
	}
	password, err := env.readPassword()
	if err != nil {
		return err
	}
	return env.changeUser(cmd.JSON, "user.password",
		func(s *app.Services, tx *postgres.Tx) (operator.User, error) {
			return s.Operators.SetPassword(env.ctx, tx, user, password, cmd.MustChange)
		})
}

// changeUser runs a use case about a user, keeps it in the audit log and prints
// the user.
func (env *environment) changeUser(
	asJSON bool, action string, use func(s *app.Services, tx *postgres.Tx) (operator.User, error),
) error {
	return env.change(func(s *app.Services, tx *postgres.Tx) (func() error, error) {
		user, err := use(s, tx)
		if err != nil {
			return nil, err
		}
		err = s.Operators.Audit(env.ctx, tx, operator.Entry{
			Actor: cliActor, Action: action, SubjectKind: "user", Subject: user.Email,
			After: newUserJSON(user),
		})
		return func() error {
			return env.print(asJSON, newUserJSON(user), func(w io.Writer) { printUser(w, user) })
		}, err
	})
}

// readPassword prompts on a terminal, where nothing is echoed, and otherwise
// reads the first line of the standard input.
func (env *environment) readPassword() (string, error) {
	if file, ok := env.stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fmt.Fprint(env.stderr, "Password: ")
		typed, err := term.ReadPassword(int(file.Fd()))
		fmt.Fprintln(env.stderr)
		if err != nil {
			return "", fmt.Errorf("reading the password: %w", err)
		}
		return string(typed), nil
	}
	line, err := bufio.NewReader(io.LimitReader(env.stdin, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	password := strings.TrimRight(line, "\r\n")
	if password == "" {
		return "", usagef("the password is missing: pass it on the standard input")
	}
	return password, nil
}
