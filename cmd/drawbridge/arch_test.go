package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// levels are the packages from the bottom up. A package imports only from lower levels;
// imports within a level are listed in siblings.
var levels = [][]string{
	{"internal/lending", "internal/calendar", "internal/compress"},
	{
		"migrations", "static", "internal/config", "internal/heap", "internal/network",
		"internal/secret", "internal/postgres", "internal/sheet",
		"internal/postgres/pgserver", "internal/postgres/pgtest",
	},
	{
		"internal/webhook/sender", "internal/webhook/subscription", "internal/webhook/delivery",
		"internal/webhook/health", "internal/webhook/bulk", "internal/webhook/diagnose",
		"internal/webhook/fault",
		"internal/webhook", "internal/email", "internal/partner", "internal/operator",
		"internal/idempotency", "internal/retention", "internal/reencrypt", "internal/document",
		"internal/catalog", "internal/apilog", "internal/queue",
		"internal/search", "internal/processes", "internal/restore", "internal/lists",
		"internal/listener", "internal/feed", "internal/admission",
	},
	{
		"internal/event", "internal/receiver", "internal/relay", "internal/alert",
		"internal/why", "internal/seed", "internal/outbox",
	},
	{"internal/loan", "internal/application", "internal/scenario", "internal/statement"},
	{"views", "views/paths", "views/mail", "views/docs"},
	{"views/ui"},
	{
		"views/account", "views/applications", "views/bulk", "views/deliveries",
		"views/development", "views/emails", "views/events", "views/operations", "views/partners",
		"views/people", "views/subscriptions",
	},
	{"web/console/page"},
	{"web/console/action"},
	{"web/console/list"},
	{
		"web/console/account", "web/console/applications", "web/console/bulk",
		"web/console/deliveries", "web/console/development", "web/console/emails",
		"web/console/events",
		"web/console/operations", "web/console/partners", "web/console/people",
		"web/console/subscriptions",
	},
	{"web", "web/api", "web/console", "web/docs", "jobs"},
	{"internal/app", "internal/app/metrics"},
	{"internal/demo", "internal/doctor"},
	{"cmd/drawbridge", "cmd/samplepartner", "cmd/bench"},
}

// siblings are the allowed imports within a level.
var siblings = map[string][]string{
	"internal/postgres":             {"migrations"},
	"internal/webhook/subscription": {"internal/webhook/sender"},
	"internal/webhook/delivery":     {"internal/webhook/sender", "internal/webhook/subscription"},
	"internal/webhook/health": {
		"internal/webhook/sender", "internal/webhook/subscription", "internal/webhook/delivery",
	},
	"internal/webhook/bulk": {"internal/webhook/subscription", "internal/webhook/delivery"},
	"internal/webhook/diagnose": {
		"internal/webhook/sender", "internal/webhook/subscription", "internal/webhook/delivery",
	},
	"internal/webhook": {
		"internal/webhook/sender", "internal/webhook/subscription", "internal/webhook/delivery",
		"internal/webhook/health", "internal/webhook/bulk", "internal/webhook/diagnose",
	},
	"internal/partner":           {"internal/email"},
	"internal/processes":         {"internal/email"},
	"internal/restore":           {"internal/feed", "internal/processes"},
	"internal/retention":         {"internal/apilog"},
	"internal/webhook/fault":     {"internal/webhook/delivery"},
	"internal/scenario":          {"internal/application", "internal/loan"},
	"internal/statement":         {"internal/loan"},
	"internal/postgres/pgtest":   {"internal/postgres", "internal/postgres/pgserver", "migrations"},
	"internal/application":       {"internal/loan"},
	"internal/app":               {"internal/app/metrics"},
	"web":                        {"web/api", "web/console", "web/docs"},
	"internal/document":          {},
	"internal/postgres/pgserver": {},
}

// fences list the only packages that may import a library.
var fences = map[string][]string{
	"github.com/labstack/echo/v4": {"web"},
	"github.com/a-h/templ":        {"views", "web", "jobs"},
	"github.com/jmoiron/sqlx":     {"internal", "cmd"},
	"github.com/lib/pq":           {"internal", "cmd"},
	"github.com/riverqueue/river": {
		"internal/webhook", "internal/email", "internal/queue", "jobs", "internal/app", "cmd",
		"migrations",
	},
	"riverqueue.com/riverui":        {"internal/app"},
	"github.com/pquerna/otp":        {"internal/operator"},
	"github.com/coreos/go-oidc/v3":  {"internal/operator"},
	"golang.org/x/oauth2":           {"internal/operator"},
	"github.com/minio/minio-go/v7":  {"internal/document"},
	"github.com/wneessen/go-mail":   {"internal/email"},
	"github.com/alecthomas/kong":    {"cmd"},
	"github.com/prometheus":         {"internal/app/metrics", "cmd/bench"},
	"go.opentelemetry.io/otel":      {"web", "internal/webhook", "internal/app"},
	"github.com/getkin/kin-openapi": {}, // for tests
	"github.com/yuin/goldmark":      {"views/docs"},
	"github.com/alecthomas/chroma":  {"views/docs"},
}

type goPackage struct {
	ImportPath, Dir  string
	Imports, GoFiles []string
}

func packages(t *testing.T) map[string]goPackage {
	t.Helper()
	output, err := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,GoFiles",
		"drawbridge/...").Output()
	if err != nil {
		t.Fatalf("listing the packages: %v", err)
	}
	found := make(map[string]goPackage)
	decoder := json.NewDecoder(strings.NewReader(string(output)))
	for {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimPrefix(p.ImportPath, "drawbridge/")] = p
	}
}

func levelOf(name string) int {
	return slices.IndexFunc(levels, func(level []string) bool { return slices.Contains(level, name) })
}

// isTestSupport reports whether a package exists for tests and tools. These are outside the
// levels and may not be imported by the product.
func isTestSupport(name string) bool {
	base := filepath.Base(name)
	return strings.HasSuffix(base, "test") || base == "testcount" ||
		strings.Contains(name, "/samples/") || strings.Contains(name, "/cmd/") ||
		strings.HasPrefix(name, "cmd/e2e/") || strings.HasPrefix(name, "tools/")
}

func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	for name, p := range packages(t) {
		level := levelOf(name)
		if level < 0 {
			if !isTestSupport(name) {
				t.Errorf("package %s has no level; put it in levels and docs/ARCHITECTURE.md", name)
			}
			continue
		}
		for _, path := range p.Imports {
			imported, own := strings.CutPrefix(path, "drawbridge/")
			if !own || slices.Contains(siblings[name], imported) {
				continue
			}
			if isTestSupport(imported) && !isTestSupport(name) {
				t.Errorf("%s imports %s, which is for tests", name, imported)
			}
			if other := levelOf(imported); other >= level {
				t.Errorf("%s (level %d) imports %s (level %d)", name, level, imported, other)
			}
		}
	}
}

func TestLibrariesStayBehindTheirFences(t *testing.T) {
	t.Parallel()
	for name, p := range packages(t) {
		if isTestSupport(name) {
			continue
		}
		for _, path := range p.Imports {
			for library, allowed := range fences {
				if path != library && !strings.HasPrefix(path, library+"/") {
					continue
				}
				inside := slices.ContainsFunc(allowed, func(fence string) bool {
					return name == fence || strings.HasPrefix(name, fence+"/")
				})
				if !inside {
					t.Errorf("%s imports %s, which only %v may", name, path, allowed)
				}
			}
		}
	}
}

// TestPackagesAndFilesStaySmall counts only what is written by hand.
func TestPackagesAndFilesStaySmall(t *testing.T) {
	t.Parallel()
	const mostFiles, mostLines = 25, 500
	for name, p := range packages(t) {
		files := slices.DeleteFunc(p.GoFiles, func(file string) bool {
			return strings.HasSuffix(file, "_templ.go")
		})
		if len(files) > mostFiles {
			t.Errorf("%s has %d files, more than %d", name, len(files), mostFiles)
		}
		for _, file := range files {
			source, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			if lines := strings.Count(string(source), "\n"); lines > mostLines {
				t.Errorf("%s/%s has %d lines, more than %d", name, file, lines, mostLines)
			}
		}
	}
}

func TestDomainIsPure(t *testing.T) {
	t.Parallel()
	for _, path := range packages(t)["internal/lending"].Imports {
		if strings.Contains(path, ".") && path != "github.com/shopspring/decimal" {
			t.Errorf("internal/lending imports %s", path)
		}
		if slices.Contains([]string{"net/http", "os", "database/sql"}, path) {
			t.Errorf("internal/lending imports %s", path)
		}
	}
}

// TestViewsFetchNothing lets views use the values that services return, but neither a service nor
// anything else that could fetch more.
func TestViewsFetchNothing(t *testing.T) {
	t.Parallel()
	fetches := regexp.MustCompile(
		`\b[a-z]\w*\.(Service|DB|Tx|Store|Engine|Site)\b|sqlx?\.|http\.Client`)
	sources, err := filepath.Glob("../../views/*/*.go")
	if err != nil || len(sources) < 50 {
		t.Fatalf("%d sources, %v", len(sources), err)
	}
	for _, path := range sources {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if found := fetches.Find(source); found != nil {
			t.Errorf("%s names %s", path, found)
		}
	}
}

// TestCommandsChangeByOneWay checks that no command opens a transaction or writes the audit log
// except through operator.Service.Act.
func TestCommandsChangeByOneWay(t *testing.T) {
	t.Parallel()
	besides := regexp.MustCompile(`\.(InTx|BeginTx\w*)\(|operator\.Audit\w*\(`)
	sources, err := filepath.Glob("*.go")
	if err != nil || len(sources) < 20 {
		t.Fatalf("%d sources, %v", len(sources), err)
	}
	for _, path := range sources {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if found := besides.Find(source); found != nil && !strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s calls %s", path, found)
		}
	}
}

// TestAdvisoryLocksHaveNumbersOfTheirOwn checks the constants that are named as locks: two locks
// with the same number would block each other's work.
func TestAdvisoryLocksHaveNumbersOfTheirOwn(t *testing.T) {
	t.Parallel()
	const fewest = 4
	owners := make(map[string][]string)
	for name, p := range packages(t) {
		for _, file := range p.GoFiles {
			for constant, number := range lockNumbers(t, filepath.Join(p.Dir, file)) {
				owners[number] = append(owners[number], name+"."+constant)
			}
		}
	}
	if len(owners) < fewest {
		t.Errorf("only %d locks found: %v", len(owners), owners)
	}
	for number, names := range owners {
		if len(names) > 1 {
			t.Errorf("%v are all %s", names, number)
		}
	}
}

// lockNumbers returns the integer constants of a file whose names end in Lock.
func lockNumbers(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Names) != len(spec.Values) {
			return true
		}
		for i, value := range spec.Values {
			number, ok := value.(*ast.BasicLit)
			if ok && number.Kind == token.INT && strings.HasSuffix(spec.Names[i].Name, "Lock") {
				found[spec.Names[i].Name] = strings.ReplaceAll(number.Value, "_", "")
			}
		}
		return true
	})
	return found
}
