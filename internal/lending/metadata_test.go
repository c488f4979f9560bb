package lending_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"drawbridge/internal/lending"
)

func TestParseMetadataKeepsWhatItGets(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ raw, want string }{
		"empty object": {`{}`, `{}`},
		"blanks go":    {" {\r\n \"projectName\" :\t\"Roof A\" } ", `{"projectName":"Roof A"}`},
		"every known key": {
			`{"projectName":"a","completionDate":"2028-02-29","certificationNumber":"b","inspector":"c",` +
				`"inspectorLicense":"d","projectDescription":"e","systemDetails":{"capacity":"8 kW",` +
				`"panelCount":24,"inverterType":"string"},"complianceNotes":""}`, "",
		},
		"unknown keys":        {`{"permitNumber":7,"technicianName":null,"list":[1,{"a":[true]}]}`, ""},
		"open system details": {`{"systemDetails":{"battery":false}}`, ""},
		"fraction of a panel": {`{"systemDetails":{"panelCount":12.5}}`, ""},
		"key with a dot":      {`{"systemDetails.capacity":5}`, ""},
		"other case":          {`{"projectname":5}`, ""},
		"known name, deeper":  {`{"site":{"projectName":5}}`, ""},
		"order and numbers":   {`{"b":1.50,"a":12345678901234567890}`, ""},
		"characters":          {`{"inspector":"Zoë 😀 <b> \ud83d\ude00 \u00e9 \\u0000"}`, ""},
	} {
		want := tc.want
		if want == "" {
			want = tc.raw
		}
		got, err := lending.ParseMetadata([]byte(tc.raw))
		if err != nil || string(got.JSON()) != want {
			t.Errorf("%s: %s, %v; want %s", name, got.JSON(), err, want)
		}
		if got.IsZero() {
			t.Errorf("%s: counts as not given", name)
		}
	}
}

func TestParseMetadataNamesEachWrongKey(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		raw  string
		want []string
	}{
		"wrong string":    {`{"projectName":5}`, []string{"metadata.projectName"}},
		"null string":     {`{"inspector":null}`, []string{"metadata.inspector"}},
		"nested string":   {`{"inspector":{"name":"x"}}`, []string{"metadata.inspector"}},
		"list":            {`{"complianceNotes":["x"]}`, []string{"metadata.complianceNotes"}},
		"other date form": {`{"completionDate":"21.11.2026"}`, []string{"metadata.completionDate"}},
		"date and time":   {`{"completionDate":"2026-11-21T00Z"}`, []string{"metadata.completionDate"}},
		"no such day":     {`{"completionDate":"2027-02-29"}`, []string{"metadata.completionDate"}},
		"date of digits":  {`{"completionDate":20261121}`, []string{"metadata.completionDate"}},
		"details of text": {`{"systemDetails":"8 kW"}`, []string{"metadata.systemDetails"}},
		"details as list": {`{"systemDetails":[]}`, []string{"metadata.systemDetails"}},
		"all at once": {
			`{"projectName":1,"completionDate":"soon","systemDetails":{"capacity":8,"panelCount":"24",` +
				`"inverterType":true}}`,
			[]string{
				"metadata.projectName", "metadata.completionDate", "metadata.systemDetails.capacity",
				"metadata.systemDetails.panelCount", "metadata.systemDetails.inverterType",
			},
		},
		"given twice":      {`{"inspector":"a","inspector":"b"}`, []string{"metadata.inspector"}},
		"twice, escaped":   {`{"a":1,"\u0061":2}`, []string{"metadata.a"}},
		"twice, deeper":    {`{"x":[{"a":1,"a":2}]}`, []string{"metadata.x[0].a"}},
		"too large":        {`{"n":1e400}`, []string{"metadata.n"}},
		"too small":        {`{"n":1E-400}`, []string{"metadata.n"}},
		"too large by far": {`{"n":1e99999999999999999999}`, []string{"metadata.n"}},
		"too exact":        {`{"n":0.` + strings.Repeat("1", 200) + `}`, []string{"metadata.n"}},
		"long, written out": {
			`{"n":[1e300` + strings.Repeat(",-1E-300", 300) + `]}`, []string{"metadata"},
		},
		"too deep":          {`{"n":` + nested(70) + `}`, []string{"metadata"}},
		"endlessly deep":    {`{"n":` + nested(9000) + `}`, []string{"metadata"}},
		"NUL in text":       {`{"a":"\u0000"}`, []string{"metadata.a"}},
		"NUL in a key":      {`{"a\u0000":1}`, []string{"metadata.a\uFFFD"}},
		"NUL, deeper":       {`{"x":[1,{"a.b":["\u0000"]}]}`, []string{`metadata.x[1]."a.b"[0]`}},
		"lone high":         {`{"a":"\ud83d"}`, []string{"metadata.a"}},
		"lone high, escape": {`{"a":"\ud83d\n"}`, []string{"metadata.a"}},
		"two high":          {`{"a":"\ud83d\ud83d"}`, []string{"metadata.a"}},
		"lone low":          {`{"a":"\ude00"}`, []string{"metadata.a"}},
		"invalid UTF-8":     {"{\"a\":\"\xff\"}", []string{"metadata"}},
		"raw NUL":           {"{\"a\":\"\x00\"}", []string{"metadata"}},
		"no value":          {``, []string{"metadata"}},
		"null":              {`null`, []string{"metadata"}},
		"list at the top":   {`[{}]`, []string{"metadata"}},
		"text":              {`"{}"`, []string{"metadata"}},
		"cut off":           {`{"a":`, []string{"metadata"}},
		"two objects":       {`{}{}`, []string{"metadata"}},
		"byte order mark":   {"\ufeff{}", []string{"metadata"}},
		"comment":           {`{/* */}`, []string{"metadata"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := lending.ParseMetadata([]byte(tc.raw))
			wantCode(t, err, lending.CodeValidation)
			if got := wrongFields(err); !slices.Equal(got, tc.want) {
				t.Errorf("faults in %v (%v), want %v", got, err, tc.want)
			}
		})
	}
}

func nested(depth int) string {
	return strings.Repeat("[", depth) + strings.Repeat("]", depth)
}

func TestMetadataIsBounded(t *testing.T) {
	t.Parallel()
	filled := func(size int) []byte {
		const frame = `{"a":""}`
		return []byte(`{"a":"` + strings.Repeat("x", size-len(frame)) + `"}`)
	}
	if _, err := lending.ParseMetadata(filled(64 << 10)); err != nil {
		t.Errorf("64 KiB are refused: %v", err)
	}
	_, err := lending.ParseMetadata(filled(64<<10 + 1))
	wantCode(t, err, lending.CodePayloadTooLarge)
}

// Errors are named up to a bound: an answer must not be larger than the request.
func TestMetadataErrorsAreBounded(t *testing.T) {
	t.Parallel()
	many := `{"a":[` + strings.Repeat("1e999,", 10_000) + `1]}`
	_, err := lending.ParseMetadata([]byte(many))
	if got := len(wrongFields(err)); got != 20 {
		t.Errorf("%d faults are named", got)
	}
	long := strings.Repeat("ä", 10_000)
	_, err = lending.ParseMetadata([]byte(`{"` + long + `":1,"` + long + `":2}`))
	wantCode(t, err, lending.CodeValidation)
	if len(err.Error()) > 200 {
		t.Errorf("the message has %d bytes", len(err.Error()))
	}
}

func TestMetadataInJSON(t *testing.T) {
	t.Parallel()
	given, err := lending.ParseMetadata([]byte(`{ "a": 1 }`))
	wantCode(t, err, "")
	out, err := json.Marshal([]lending.Metadata{given, {}})
	if err != nil || string(out) != `[{"a":1},null]` {
		t.Errorf("marshalled %s, %v", out, err)
	}
	given.JSON()[1] = 'x'
	if string(given.JSON()) != `{"a":1}` {
		t.Error("a caller changed the metadata")
	}
}
