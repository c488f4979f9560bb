package config

import (
	"cmp"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Variable is one setting of the environment.
type Variable struct {
	Name string
	// Default is used when the variable is empty; in development, Development replaces it if it is not
	// empty.
	Default     string
	Development string
	Meaning     string
	// Secret values are masked wherever settings are shown.
	Secret bool

	tag  reflect.StructTag
	rule rule
	// index is the path to the field of Config.
	index []int
}

// table has every setting in the order of the documentation.
var table = tableOf(reflect.TypeFor[Config](), nil)

// tableOf reads the tags of a struct's fields, including those of nested structs.
func tableOf(of reflect.Type, within []int) []Variable {
	var found []Variable
	for i := range of.NumField() {
		field := of.Field(i)
		index := append(slices.Clone(within), i)
		name, tagged := field.Tag.Lookup("env")
		if !tagged {
			found = append(found, tableOf(field.Type, index)...)
			continue
		}
		found = append(found, Variable{
			Name: name, Default: field.Tag.Get("default"), Development: field.Tag.Get("dev"),
			Meaning: field.Tag.Get("help"), Secret: field.Tag.Get("secret") != "",
			tag: field.Tag, rule: rules[field.Tag.Get("is")], index: index,
		})
	}
	return found
}

// Variables lists every setting in the order of the documentation.
func Variables() []Variable { return slices.Clone(table) }

// injected matches the variables that Kubernetes gives each container for a Service with the name
// of the program. Of these, only DRAWBRIDGE_PORT might be meant as a setting: when it is a number.
var injected = regexp.MustCompile(`^DRAWBRIDGE_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|` +
	`PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// unknown lists the names that look like settings of ours but are not: a misspelt setting would
// silently have no effect. Tests have their own prefix.
func unknown(names []string, getenv func(string) string) Errors {
	var errs Errors
	for _, name := range names {
		if injected.MatchString(name) && (name != "DRAWBRIDGE_PORT" ||
			strings.Contains(getenv(name), "://")) {
			continue
		}
		known := slices.ContainsFunc(table, func(v Variable) bool { return v.Name == name })
		if known || !strings.HasPrefix(name, "DRAWBRIDGE_") ||
			strings.HasPrefix(name, "DRAWBRIDGE_TEST_") {
			continue
		}
		problem := name + " is no setting"
		nearest := slices.MinFunc(table, func(a, b Variable) int {
			return distance(name, a.Name) - distance(name, b.Name)
		})
		if distance(name, nearest.Name) <= len(name)/4 {
			problem += "; did you mean " + nearest.Name + "?"
		} else {
			problem += "; drawbridge serve --help lists them"
		}
		errs = append(errs, problem)
	}
	return errs
}

// distance counts the letters to insert, remove or replace to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0]++
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// value returns the value of the variable, or its default in env.
func (v Variable) value(getenv func(string) string, env Env) string {
	development := ""
	if env == Development {
		development = v.Development
	}
	return cmp.Or(strings.TrimSpace(getenv(v.Name)), development, v.Default)
}
