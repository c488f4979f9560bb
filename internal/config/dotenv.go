package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// WithDotEnv returns a lookup that asks environ first and then the file at
// path, which need not exist. Lines are NAME=VALUE, optionally quoted or
// preceded by export; empty lines and lines beginning with # do not count.
func WithDotEnv(environ func(string) string, path string) (func(string) string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return environ, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	values, err := parseDotEnv(string(text))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return func(name string) string {
		if value := environ(name); value != "" {
			return value
		}
		return values[name]
	}, nil
}

func parseDotEnv(text string) (map[string]string, error) {
	values := make(map[string]string)
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, found := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		name = strings.TrimSpace(name)
		if !found || name == "" || strings.ContainsAny(name, " \t") {
			return nil, fmt.Errorf("line %d is not NAME=VALUE", number)
		}
		values[name] = unquote(strings.TrimSpace(value))
	}
	return values, nil
}

func unquote(value string) string {
	if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		return value[1 : len(value)-1]
	}
	return value
}
