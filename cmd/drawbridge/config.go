package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"drawbridge/internal/config"
)

type configCmd struct {
	JSON bool `help:"Print one JSON document."`
}

// Help says what the command leaves out.
func (configCmd) Help() string {
	return "Prints every setting as the service would read it here: its value, with secrets masked, " +
		"where it comes from, and what is wrong with it. Ends with 2 when the service would not start."
}

// Run prints the settings and fails as the service would.
func (cmd configCmd) Run(env *environment) error {
	getenv, names, err := config.WithDotEnv(env.getenv, ".env")
	if err != nil {
		return err
	}
	settings := config.Effective(env.getenv, getenv)
	if err := env.print(cmd.JSON, output{
		map[string]any{"settings": settings}, func(w io.Writer) {
			var lines strings.Builder
			aligned(func(w io.Writer) {
				fmt.Fprintln(w, "SETTING\tVALUE\tFROM\tFAULT")
				for _, setting := range settings {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", setting.Name, cmp.Or(setting.Value, "(empty)"),
						setting.Source, setting.Fault)
				}
			})(&lines)
			fmt.Fprint(w, env.styleOf(env.stdout).head(lines.String()))
		},
	}); err != nil {
		return err
	}
	_, err = config.Load(getenv, append(names, env.names...)...)
	return err
}
