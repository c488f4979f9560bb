package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// WithDotEnv returns a lookup in environ first and then in the file at path, which need not exist,
// and the names that the file sets. Lines are NAME=VALUE, optionally quoted, preceded by export or
// followed by a comment; empty lines and lines beginning with # are ignored.
func WithDotEnv(
	environ func(string) string, path string,
) (lookup func(string) string, names []string, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return environ, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", path, err)
	}
	values, err := parseDotEnv(string(text))
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return func(name string) string {
		if value := environ(name); value != "" {
			return value
		}
		return values[name]
	}, slices.Sorted(maps.Keys(values)), nil
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

// unquote removes the quotes or the comment from a value. A # without a space before it belongs to
// the value.
func unquote(value string) string {
	if value != "" && (value[0] == '"' || value[0] == '\'') {
		quoted, rest, closed := strings.Cut(value[1:], value[:1])
		rest = strings.TrimSpace(rest)
		if closed && (rest == "" || rest[0] == '#') {
			return quoted
		}
		return value
	}
	if strings.HasPrefix(value, "#") {
		return ""
	}
	for _, comment := range []string{" #", "\t#"} {
		value, _, _ = strings.Cut(value, comment)
	}
	return strings.TrimSpace(value)
}
