package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// module is a program whose tests end in every possible way.
var module = map[string]string{
	"go.mod": "module sample\n\ngo 1.26\n",
	"good/good_test.go": `package good
import "testing"
func TestOne(t *testing.T) { t.Log("quiet") }
func TestTwo(t *testing.T) { t.Run("sub", func(t *testing.T) {}) }
`,
	"bad/bad_test.go": `package bad
import "testing"
func TestGood(t *testing.T) { t.Log("quiet") }
func TestBad(t *testing.T) { t.Run("sub", func(t *testing.T) { t.Error("loud reason") }) }
func TestSkipped(t *testing.T) { testing.TB(t).Skip("quiet") }
`,
	"panics/panics_test.go": `package panics
import "testing"
func TestPanic(t *testing.T) { panic("loud panic") }
`,
	"exits/exits_test.go": `package exits
import ("fmt"; "os"; "testing")
func TestMain(m *testing.M) { fmt.Println("loud exit"); os.Exit(3) }
func TestNever(t *testing.T) {}
`,
	"broken/broken_test.go": "package broken\nfunc loudName() { undefinedName() }\n",
	"empty/empty.go":        "package empty\n",
}

func writeModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range module {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCounts(t *testing.T) {
	t.Parallel()
	dir := writeModule(t)
	tests := []struct {
		name string
		// packages are tested, and none of quiet but all of loud is printed.
		packages    []string
		want        string
		loud, quiet []string
	}{
		{
			"success",
			[]string{"./good", "./empty"},
			"3 passed, 0 failed, 0 skipped",
			[]string{"ok   sample/good", "3 tests"},
			[]string{"quiet", "empty"},
		},
		{
			"failure",
			[]string{"./bad"},
			"1 passed, 2 failed, 1 skipped",
			[]string{"FAIL sample/bad", "loud reason", "bad_test.go:4"},
			[]string{"quiet"},
		},
		{
			"panic",
			[]string{"./panics"},
			"0 passed, 1 failed, 0 skipped",
			[]string{"loud panic", "FAIL sample/panics"},
			nil,
		},
		{
			"early exit",
			[]string{"./exits"},
			"0 passed, 1 failed, 0 skipped",
			[]string{"loud exit", "FAIL sample/exits"},
			nil,
		},
		{
			"no build",
			[]string{"./broken"},
			"0 passed, 1 failed, 0 skipped",
			[]string{"undefinedName", "FAIL sample/broken"},
			nil,
		},
		{
			"all",
			[]string{"./..."},
			"4 passed, 5 failed, 1 skipped",
			[]string{"loud reason", "loud panic", "loud exit", "undefinedName"},
			[]string{"quiet"},
		},
		{
			"no such package",
			[]string{"./missing"},
			"0 passed, 1 failed, 0 skipped",
			[]string{"missing"},
			nil,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), "go",
				append([]string{"test", "-json"}, test.packages...)...)
			command.Dir = dir
			// The counts are compared with the sample's own result.
			stream, _ := command.Output()
			var printed strings.Builder
			result := newTally(&printed)
			if err := result.read(strings.NewReader(string(stream))); err != nil {
				t.Fatal(err)
			}
			result.close()
			lines := strings.Split(strings.TrimSpace(printed.String()), "\n")
			if last := lines[len(lines)-1]; last != test.want {
				t.Errorf("the last line is %q, want %q", last, test.want)
			}
			checkPrinted(t, printed.String(), test.loud, test.quiet)
		})
	}
}

func checkPrinted(t *testing.T, printed string, loud, quiet []string) {
	t.Helper()
	for _, text := range loud {
		if !strings.Contains(printed, text) {
			t.Errorf("%q is missing in:\n%s", text, printed)
		}
	}
	for _, text := range quiet {
		if strings.Contains(printed, text) {
			t.Errorf("%q is noise in:\n%s", text, printed)
		}
	}
}

func TestExitStatusIsThatOfGoTest(t *testing.T) {
	t.Chdir(writeModule(t))
	for packages, want := range map[string]int{"./good": 0, "./bad": 1, "./broken": 1} {
		status, err := run(t.Context(), []string{packages}, io.Discard)
		if status != want || err != nil {
			t.Errorf("for %s: status %d, %v; want %d", packages, status, err, want)
		}
	}
}

// TestEachPackageIsTestedOnce: each package is tested once, whether it runs apart or not.
func TestEachPackageIsTestedOnce(t *testing.T) {
	t.Chdir(writeModule(t))
	for _, test := range []struct {
		apart    []string
		packages []string
		want     string
		status   int
	}{
		{[]string{"./good"}, []string{"./..."}, "4 passed, 5 failed, 1 skipped", 1},
		{[]string{"./good", "./bad/..."}, []string{"./..."}, "4 passed, 5 failed, 1 skipped", 1},
		{[]string{"./bad"}, []string{"-run", "TestOne", "./good"}, "1 passed, 0 failed, 0 skipped", 0},
		{
			[]string{"./good", "./bad", "./..."},
			[]string{"./good", "./bad"},
			"4 passed, 2 failed, 1 skipped", 1,
		},
		{[]string{"./bad"}, []string{"sample/good"}, "3 passed, 0 failed, 0 skipped", 0},
		{[]string{"./good"}, []string{"./empty", "sample/good"}, "3 passed, 0 failed, 0 skipped", 0},
		{
			[]string{"./good"},
			[]string{"-run=TestOne", "./good", "./empty"},
			"1 passed, 0 failed, 0 skipped", 0,
		},
	} {
		var arguments []string
		for _, pattern := range test.apart {
			arguments = append(arguments, "-apart", pattern)
		}
		var printed strings.Builder
		status, err := run(t.Context(), append(arguments, test.packages...), &printed)
		if err != nil || status != test.status || !strings.HasSuffix(printed.String(), test.want+"\n") {
			t.Errorf("%q apart from %q: status %d, %v, and printed\n%s",
				test.apart, test.packages, status, err, &printed)
		}
	}
	status, err := run(t.Context(), []string{"-apart", "./none/...x", "./good"}, io.Discard)
	if status == 0 || err == nil {
		t.Errorf("a pattern of nothing: status %d, %v", status, err)
	}
}
