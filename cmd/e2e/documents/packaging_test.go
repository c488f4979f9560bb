package documents

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/app"
	"drawbridge/internal/config"
)

// instruction is a line of the Dockerfile, continuations joined.
type instruction struct{ name, rest string }

func dockerfile(t *testing.T) []instruction {
	t.Helper()
	text := strings.ReplaceAll(readDocument(t, "Dockerfile"), "\\\n", " ")
	var found []instruction
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, rest, ok := strings.Cut(line, " "); ok && !strings.HasPrefix(line, "#") {
			found = append(found, instruction{name, strings.Join(strings.Fields(rest), " ")})
		}
	}
	return found
}

// isIgnored reports whether .dockerignore keeps a file out of the build.
func isIgnored(t *testing.T, path string) bool {
	t.Helper()
	for pattern := range strings.FieldsSeq(readDocument(t, ".dockerignore")) {
		if base, everywhere := strings.CutPrefix(pattern, "**/"); everywhere {
			if ok, err := filepath.Match(base, filepath.Base(path)); err != nil || ok {
				return true
			}
			continue
		}
		if path == pattern || strings.HasPrefix(path, pattern+"/") {
			return true
		}
	}
	return false
}

// TestDockerfileHasWhatItCopies replaces a build by a container engine: every file that
// the image is made from exists and is copied.
func TestDockerfileHasWhatItCopies(t *testing.T) {
	t.Parallel()
	stages := []string{}
	for _, step := range dockerfile(t) {
		words := strings.Fields(step.rest)
		switch step.name {
		case "FROM":
			stages = append(stages, words[len(words)-1])
		case "COPY":
			from := ""
			for strings.HasPrefix(words[0], "--") {
				if name, ok := strings.CutPrefix(words[0], "--from="); ok {
					from = name
				}
				words = words[1:]
			}
			if from != "" {
				if !slices.Contains(stages, from) {
					t.Errorf("COPY %s: there is no stage %s before it", step.rest, from)
				}
				continue
			}
			for _, source := range words[:len(words)-1] {
				if _, err := os.Stat("../../../" + source); err != nil || isIgnored(t, source) {
					t.Errorf("COPY %s: %s is not in the build context (%v)", step.rest, source, err)
				}
			}
		}
	}
	if len(stages) != 3 {
		t.Errorf("the stages are %v", stages)
	}
	for _, path := range builtFrom(t) {
		if isIgnored(t, path) {
			t.Errorf(".dockerignore keeps %s out, which the program is built from", path)
		}
	}
}

// builtFrom lists our files that are built into the program, including embedded ones.
func builtFrom(t *testing.T) []string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Module,GoFiles,EmbedFiles",
		"drawbridge/cmd/drawbridge")
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var found struct {
			Dir                 string
			GoFiles, EmbedFiles []string
		}
		if err := decoder.Decode(&found); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		folder, err := filepath.Rel(root, found.Dir)
		if err != nil || strings.HasPrefix(folder, "..") {
			continue
		}
		for _, name := range slices.Concat(found.GoFiles, found.EmbedFiles) {
			paths = append(paths, filepath.Join(folder, name))
		}
	}
	if len(paths) < 100 {
		t.Errorf("the program is built from %v", paths)
	}
	return paths
}

// TestImageIsWhatMakeBuilds compares the build commands, so that an image contains the
// same program that the tests ran.
func TestImageIsWhatMakeBuilds(t *testing.T) {
	t.Parallel()
	plain := strings.NewReplacer(`"`, "", "'", "", "$(VERSION)", "V", "${VERSION}", "V")
	makefile := firstMatch(t, "Makefile", `(?m)^BUILD +:= (.*)$`)
	goes := firstMatch(t, "go.mod", `(?m)^go (\d+\.\d+)`)
	w, built, based := e2etest.NewWithoutDatabase(t, nil), false, false
	for _, step := range dockerfile(t) {
		switch step.name {
		case "FROM":
			based = based || strings.HasPrefix(step.rest, "golang:"+goes)
		case "RUN":
			built = built || strings.HasPrefix(plain.Replace(step.rest), plain.Replace(makefile)+" ")
		case "HEALTHCHECK", "CMD":
			_, list, _ := strings.Cut(step.rest, "[")
			var words []string
			if err := json.Unmarshal([]byte("["+list), &words); err != nil {
				t.Errorf("%s %s: %v", step.name, step.rest, err)
			}
			words = slices.DeleteFunc(words, func(word string) bool { return word == "/drawbridge" })
			if got := w.Run("", append(words, "--help")...); got.Status != 0 {
				t.Errorf("%s runs %v, which is no command", step.name, words)
			}
		case "ENV":
			for assignment := range strings.FieldsSeq(step.rest) {
				name, value, _ := strings.Cut(assignment, "=")
				wantVariable(t, "Dockerfile", name, value)
			}
		}
	}
	if !built {
		t.Errorf("no RUN of the Dockerfile builds as `%s`", makefile)
	}
	if !based {
		t.Errorf("the Dockerfile does not build with Go %s as go.mod wants it", goes)
	}
	last := slices.IndexFunc(dockerfile(t), func(step instruction) bool {
		return step.name == "FROM" && strings.HasSuffix(step.rest, ":nonroot")
	})
	if last < 0 {
		t.Error("the image does not run as an ordinary user")
	}
}

// firstMatch is the first match of the pattern's group in a file.
func firstMatch(t *testing.T, name, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(readDocument(t, name))
	if found == nil {
		t.Fatalf("%s has nothing like %s", name, pattern)
	}
	return found[1]
}

// wantVariable checks that a file sets an existing variable, to a value that is accepted.
func wantVariable(t *testing.T, file, name, value string) {
	t.Helper()
	none := func(string) string { return "" }
	alone := func(asked string) string { return map[string]string{name: value}[asked] }
	for _, setting := range config.Effective(none, alone) {
		if setting.Name == name {
			// Other settings that production requires need not be in the file.
			fault := setting.Error != "" && setting.Value != ""
			if fault && !strings.Contains(setting.Error, "production") {
				t.Errorf("%s sets %s=%s: %s", file, name, value, setting.Error)
			}
			return
		}
	}
	t.Errorf("%s sets %s, which is no setting", file, name)
}

// TestComposeFileFits reads the file as a container engine would, and its settings as the
// program does.
func TestComposeFileFits(t *testing.T) {
	t.Parallel()
	var file struct {
		Services map[string]struct {
			Build       string
			Image       string
			Command     []string
			Environment map[string]string
			Ports       []string
			Volumes     []string
			DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
			Healthcheck struct{ Test []string }
			Grace       string `yaml:"stop_grace_period"`
		}
		Volumes map[string]any
	}
	decoder := yaml.NewDecoder(strings.NewReader(readDocument(t, "docker-compose.yml")))
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	service := file.Services["drawbridge"]
	if service.Build != "." || len(file.Services) != 2 {
		t.Fatalf("the services are %+v", file.Services)
	}
	if grace, err := time.ParseDuration(service.Grace); err != nil ||
		grace < app.DrainTimeout+5*time.Second {
		t.Errorf("it is killed after %s (%v), and may need %s to end", grace, err, app.DrainTimeout)
	}
	settings, err := config.Load(func(name string) string { return service.Environment[name] })
	if err != nil {
		t.Fatalf("the program refuses the settings: %v", err)
	}
	for name, value := range service.Environment {
		wantVariable(t, "docker-compose.yml", name, value)
	}
	_, port, _ := strings.Cut(settings.Listen, ":")
	publishes := func(published string) bool { return strings.HasSuffix(published, ":"+port) }
	if !slices.ContainsFunc(service.Ports, publishes) {
		t.Errorf("it listens on %s and publishes %v", settings.Listen, service.Ports)
	}
	w := e2etest.NewWithoutDatabase(t, service.Environment)
	if got := w.Run("", append(service.Command, "--help")...); got.Status != 0 {
		t.Errorf("it runs %v, which is no command", service.Command)
	}
	for name, other := range file.Services {
		for _, volume := range other.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if _, declared := file.Volumes[source]; !declared {
				t.Errorf("%s uses the volume %s, which is not declared", name, source)
			}
		}
		for on, how := range other.DependsOn {
			if how.Condition == "service_healthy" && len(file.Services[on].Healthcheck.Test) == 0 {
				t.Errorf("%s waits for the health of %s, which has no check", name, on)
			}
		}
	}
}
