package document

import (
	"mime"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCleanName(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ name, want string }{
		"plain":             {"permit.pdf", "permit.pdf"},
		"other script":      {"Прием 完成 é.docx", "Прием 完成 é.docx"},
		"emoji family":      {"👩\u200d🔧.png", "👩\u200d🔧.png"},
		"unix path":         {"../../etc/passwd.pdf", "passwd.pdf"},
		"windows path":      {`C:\temp\permit.pdf`, "permit.pdf"},
		"newlines":          {"a\r\nX-Evil: 1.pdf", "aX-Evil: 1.pdf"},
		"NUL":               {"a\x00.pdf", "a.pdf"},
		"direction":         {"permit\u202Efdp.exe", "permitfdp.exe"},
		"line separator":    {"a\u2028b.pdf", "ab.pdf"},
		"invalid UTF-8":     {"a\xff.pdf", "a\uFFFD.pdf"},
		"outer space":       {"  permit .pdf ", "permit .pdf"},
		"markup stays text": {"<img src=x>.pdf", "<img src=x>.pdf"},
		"only an extension": {".pdf", "document.pdf"},
		"hidden":            {"...hidden.pdf", "hidden.pdf"},
		"dots":              {"...", ""},
		"empty":             {"", ""},
		"only controls":     {"\x01\x02", ""},
		"slash at the end":  {"folder/", ""},
		"long":              {strings.Repeat("é", 300) + ".pdf", strings.Repeat("é", 125) + ".pdf"},
		"long extension":    {"a." + strings.Repeat("b", 300), "a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := cleanName(test.name); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestContentDispositionIsInert(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ name, header string }{
		"plain":  {"permit 7.pdf", `attachment; filename="permit 7.pdf"`},
		"accent": {"é.pdf", `attachment; filename="_.pdf"; filename*=UTF-8''%C3%A9.pdf`},
		"quote": {
			`a"; filename="b.exe`,
			`attachment; filename="a__ filename=_b.exe"; ` +
				`filename*=UTF-8''a%22%3B%20filename%3D%22b.exe`,
		},
		"header":  {"a\r\nSet-Cookie: x=1.pdf", `attachment; filename="aSet-Cookie: x=1.pdf"`},
		"percent": {"50%41.pdf", `attachment; filename="50_41.pdf"; filename*=UTF-8''50%2541.pdf`},
		"path":    {"../../x.pdf", `attachment; filename="x.pdf"`},
		"nothing": {"\x00", `attachment; filename="document"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := ContentDisposition(test.name); got != test.header {
				t.Errorf("got  %s\nwant %s", got, test.header)
			}
		})
	}
}

func FuzzContentDisposition(f *testing.F) {
	for _, name := range []string{"permit.pdf", "é\".pdf", "a\r\nb", "%zz;", "\u202E", "\xff/x"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		clean := cleanName(name)
		if len(clean) > maxName || !utf8.ValidString(clean) || cleanName(clean) != clean {
			t.Fatalf("cleaning %q gave %q, which is not clean", name, clean)
		}
		header := ContentDisposition(name)
		for _, c := range []byte(header) {
			if c < ' ' || c > '~' {
				t.Fatalf("header %q holds byte %#x", header, c)
			}
		}
		disposition, params, err := mime.ParseMediaType(header)
		if err != nil || disposition != "attachment" || len(params) != 1 {
			t.Fatalf("header %q parses as %q %q %v", header, disposition, params, err)
		}
		if clean != "" && params["filename"] != clean {
			t.Fatalf("header %q gives the name %q, want %q", header, params["filename"], clean)
		}
	})
}
