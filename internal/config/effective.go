package config

import (
	"errors"
	"net/url"
	"strings"
)

// Source is where a setting comes from.
type Source string

// The sources of a setting, strongest first.
const (
	FromEnvironment Source = "environment"
	FromFile        Source = ".env"
	FromDefault     Source = "default"
)

// masked replaces a secret that is set.
const masked = "****"

// Setting is one variable as a process would read it, fit for display: of a secret at most the
// scheme and host are shown.
type Setting struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Source  Source `json:"source"`
	Meaning string `json:"meaning"`
	// Error is why the service would not start, empty for none.
	Error string `json:"fault,omitempty"`
}

// Effective returns every setting in the order of the documentation. environ has the signature of
// os.Getenv; getenv is the same with the file .env as a fallback, see WithDotEnv. Errors are
// returned with the variables that they name.
func Effective(environ, getenv func(string) string) []Setting {
	_, err := Load(getenv)
	var errs Errors
	errors.As(err, &errs)
	env := Env(envName(getenv))
	settings := make([]Setting, 0, len(table))
	for _, variable := range table {
		setting := Setting{
			Name:    variable.Name,
			Value:   variable.show(variable.value(getenv, env)),
			Source:  FromDefault,
			Meaning: variable.Meaning,
			Error:   errs.Of(variable.Name),
		}
		switch {
		case strings.TrimSpace(environ(variable.Name)) != "":
			setting.Source = FromEnvironment
		case strings.TrimSpace(getenv(variable.Name)) != "":
			setting.Source = FromFile
		}
		settings = append(settings, setting)
	}
	return settings
}

// Of returns the error of one variable.
func (f Errors) Of(name string) string {
	for _, problem := range f {
		if rest, found := strings.CutPrefix(problem, name+" "); found {
			return rest
		}
	}
	return ""
}

// behindHost returns the part of a URL after its host, empty where it has none. An @ in it means
// that a password was not encoded and the host ended within it, so the rest of it is in that part.
func behindHost(value string) string {
	_, rest, _ := strings.Cut(value, "://")
	end := strings.IndexAny(rest, "/?#")
	if end <= 0 {
		return ""
	}
	return rest[end:]
}

// endsEarly reports that the host of a URL ended within its password. The values of parameters may
// hold an @, such as that of user.
func endsEarly(value string) bool {
	path, parameters, _ := strings.Cut(behindHost(value), "?")
	return strings.Contains(path+parameterValue.ReplaceAllString(parameters, ""), "@")
}

// show masks the value of a secret, and of an address that may hold one by mistake. Of a URL the
// scheme, the host and the path are shown, which identify its destination; its user, password and
// parameters are not. A value that is not a valid URL, for instance with a slash missing, may have
// its password anywhere.
func (v Variable) show(value string) string {
	is := v.tag.Get("is")
	if !v.Secret && is != "origin" && is != "issuer" || value == "" {
		return value
	}
	parsed, err := url.Parse(value)
	if err != nil || is == "text" || parsed.Scheme == "" ||
		!strings.HasPrefix(value, parsed.Scheme+"://") || strings.Contains(behindHost(value), "@") {
		return masked
	}
	shown := parsed.Scheme + "://"
	if parsed.User != nil {
		shown += masked + "@"
	}
	shown += parsed.Host + parsed.EscapedPath()
	if parsed.RawQuery != "" {
		shown += "?" + masked
	}
	return shown
}
