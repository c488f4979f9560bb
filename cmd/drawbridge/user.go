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
	fmt.Fprintf(w, "%s\t%s\t%s%s\n", user.Email, user.Role, user.Name, state)
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
	request := operator.NewUser{
		Email: cmd.Email, Name: cmd.Name, Role: operator.Role(cmd.Role),
		Password: env.readPassword(), MustChange: cmd.MustChange,
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
	return rowsOf("users", newUserJSON, "E-MAIL\tROLE\tNAME", printUser).all(env, cmd.JSON,
		func(s *app.Services) ([]operator.User, error) {
			users, _, err := s.Operators.Users(env.ctx, operator.UserFilter{})
			return users, err
		})
}

// userNamed takes the user's address as an argument or by the flag of create.
type userNamed struct {
	Address string `arg:"" optional:"" name:"email" help:"Address of the user."`
	Email   string `help:"The same by name." placeholder:"ADDRESS"`
}

func (cmd userNamed) user(env *environment) string {
	if (cmd.Address == "") == (cmd.Email == "") {
		env.refusef("name the user by one address: as an argument or by --email")
	}
	return cmp.Or(cmd.Address, cmd.Email)
}

type userDisableCmd struct {
	userNamed
	JSON bool `name:"json" help:"Print one JSON document."`
}

// Run disables a user.
func (cmd userDisableCmd) Run(env *environment) error {
	user := cmd.user(env)
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
	user, password := cmd.user(env), env.readPassword()
	return env.changeUser(cmd.JSON, "user.password",
		func(s *app.Services, tx *postgres.Tx) (operator.User, error) {
			return s.Operators.SetPassword(env.ctx, tx, user, password, cmd.MustChange)
		})
}

// changeUser changes a user and prints what the user is then.
func (env *environment) changeUser(
	asJSON bool, action string, use func(s *app.Services, tx *postgres.Tx) (operator.User, error),
) error {
	return env.change(asJSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		user, err := use(s, tx)
		printed := newUserJSON(user)
		return did(entry(action, user.Email, "", printed),
			output{printed, aligned(func(w io.Writer) { printUser(w, user) })}), err
	})
}

// readPassword prompts on a terminal, where nothing is echoed, and otherwise
// reads the first line of the standard input.
func (env *environment) readPassword() string {
	if env.fault != nil {
		return ""
	}
	if file, ok := env.stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fmt.Fprint(env.stderr, "Password: ")
		typed, err := term.ReadPassword(int(file.Fd()))
		fmt.Fprintln(env.stderr)
		if err != nil {
			env.refuse(fmt.Errorf("reading the password: %w", err))
		}
		return string(typed)
	}
	line, err := bufio.NewReader(io.LimitReader(env.stdin, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		env.refuse(fmt.Errorf("reading the password: %w", err))
	}
	password := strings.TrimRight(line, "\r\n")
	if password == "" {
		env.refusef("the password is missing: pass it on the standard input")
	}
	return password
}
