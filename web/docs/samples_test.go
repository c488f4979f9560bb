package docs

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	docsview "drawbridge/views/docs"
)

// The published vectors are correct according to Go's own library.
func TestVectors(t *testing.T) {
	t.Parallel()
	vectors, err := Vectors()
	if err != nil {
		t.Fatal(err)
	}
	genuine := 0
	for _, vector := range vectors {
		mac := hmac.New(sha256.New, []byte(vector.Secret))
		mac.Write([]byte(vector.Body))
		expected := hex.EncodeToString(mac.Sum(nil))
		if slices.Contains(vector.Signatures, expected) != vector.Genuine {
			t.Errorf("%s: genuine = %v is wrong; the signature is %s",
				vector.Name, vector.Genuine, expected)
		}
		if vector.Genuine {
			genuine++
		}
		if len(vector.Secret) < 16 || strings.ContainsFunc(vector.Secret, func(r rune) bool {
			return r <= ' ' || r > '~'
		}) {
			t.Errorf("%s: no subscription can have the secret %q", vector.Name, vector.Secret)
		}
	}
	if genuine < 3 || len(vectors)-genuine < 3 {
		t.Errorf("%d genuine vectors of %d: want several of both", genuine, len(vectors))
	}
}

// runtime says how to run one language's sample. build, if any, builds the program in the
// folder that replaces OUT; needs are the required commands.
type runtime struct {
	language   string
	needs      []string
	build, run []string
}

var runtimes = []runtime{
	{
		"Go",
		[]string{"go"},
		[]string{"go", "build", "-o", "OUT/verify", "samples/go/main.go"},
		[]string{"OUT/verify"},
	},
	{"Node.js", []string{"node"}, nil, []string{"node", "samples/node/verify.mjs"}},
	{"Python", []string{"python3"}, nil, []string{"python3", "samples/python/verify.py"}},
	{"PHP", []string{"php"}, nil, []string{"php", "samples/php/verify.php"}},
	{"Ruby", []string{"ruby"}, nil, []string{"ruby", "samples/ruby/verify.rb"}},
	{
		"Java",
		[]string{"javac", "java"},
		[]string{"javac", "-d", "OUT", "samples/java/Verify.java"},
		[]string{"java", "-cp", "OUT", "Verify"},
	},
	{
		"C#",
		[]string{"mcs", "mono"},
		[]string{"mcs", "-out:OUT/verify.exe", "samples/csharp/Verify.cs"},
		[]string{"mono", "OUT/verify.exe"},
	},
}

// missing names the first command that is not installed.
func (r runtime) missing() string {
	for _, name := range r.needs {
		if _, err := exec.LookPath(name); err != nil {
			return name
		}
	}
	return ""
}

// Each sample gives the right verdict on each vector. Go is always available; other samples
// run if their interpreter is installed, and the log says which did not run.
func TestSamplesJudgeEveryVector(t *testing.T) {
	t.Parallel()
	vectors, err := Vectors()
	if err != nil {
		t.Fatal(err)
	}
	if len(runtimes) != len(sampleLanguages) {
		t.Errorf("%d runtimes for %d samples", len(runtimes), len(sampleLanguages))
	}
	for _, language := range runtimes {
		if name := language.missing(); name != "" {
			t.Logf("%s is not run: no %s here", language.language, name)
			continue
		}
		t.Run(language.language, func(t *testing.T) {
			t.Parallel()
			language.judge(t, vectors)
		})
	}
}

func (r runtime) judge(t *testing.T, vectors []docsview.Vector) {
	t.Helper()
	out := t.TempDir()
	command := func(words []string) *exec.Cmd {
		filled := slices.Clone(words)
		for i := range filled {
			if rest, ok := strings.CutPrefix(filled[i], "OUT"); ok {
				filled[i] = filepath.Join(out, rest)
			}
			filled[i] = strings.Replace(filled[i], "-out:OUT", "-out:"+out, 1)
		}
		return exec.Command(filled[0], filled[1:]...)
	}
	if len(r.build) > 0 {
		if output, err := command(r.build).CombinedOutput(); err != nil {
			t.Fatalf("building: %v\n%s", err, output)
		}
	}
	for _, vector := range vectors {
		words := append(slices.Clone(r.run), vector.Secret)
		check := command(append(words, vector.Signatures...))
		check.Stdin = strings.NewReader(vector.Body)
		output, err := check.CombinedOutput()
		want := "forged"
		if vector.Genuine {
			want = "genuine"
		}
		if strings.TrimSpace(string(output)) != want || (err == nil) != vector.Genuine {
			t.Errorf("%s: said %q (%v), want %s", vector.Name, output, err, want)
		}
	}
}
