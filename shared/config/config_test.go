package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"partidor.dev/partidor/shared/config"
)

type file struct {
	Listen    string            `yaml:"listen"`
	Deadline  time.Duration     `yaml:"deadline"`
	Workers   int               `yaml:"workers"`
	Strict    bool              `yaml:"strict"`
	Routes    []route           `yaml:"routes"`
	Upstreams map[string]target `yaml:"upstreams"`
	Level     level             `yaml:"level"`
}

type level bool

func (l *level) UnmarshalText(b []byte) error {
	if *l = string(b) == "high"; !*l && string(b) != "low" {
		return fmt.Errorf("%q is neither high nor low", b)
	}
	return nil
}

type route struct {
	ID   string  `yaml:"id"`
	Cost int64   `yaml:"cost"`
	Part float64 `yaml:"part"`
}

type target struct {
	URL string `yaml:"url"`
}

func (f *file) SetDefaults() {
	if f.Workers == 0 {
		f.Workers = 4
	}
}

func (f *file) Validate() error {
	var faults config.Faults
	for i, r := range f.Routes {
		if r.Cost < 0 {
			faults.Merge("routes["+string(rune('0'+i))+"]", &config.Fault{Field: "cost", Err: errors.New("must be at least 0")})
		}
	}
	for name, u := range f.Upstreams {
		if u.URL == "" {
			faults.Add("upstreams."+name+".url", "must not be empty")
		}
	}
	return faults.Err()
}

func decode(text string) (file, error) {
	var f file
	doc, err := config.Parse("gateway.yaml", []byte(text))
	if err == nil {
		err = doc.Decode(&f)
	}
	return f, err
}

func TestDecodeFillsAndCompletes(t *testing.T) {
	got, err := decode("listen: :8080\ndeadline: 5ms\nroutes:\n  - id: a\n    cost: 2\nupstreams:\n  b: {url: http://b}\n")
	if err != nil {
		t.Fatal(err)
	}
	want := file{Listen: ":8080", Deadline: 5 * time.Millisecond, Workers: 4, Routes: []route{{ID: "a", Cost: 2}},
		Upstreams: map[string]target{"b": {URL: "http://b"}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
}

func TestDecodeAcceptsWhatIsLeftOut(t *testing.T) {
	for _, text := range []string{"", "\n", "# only a comment\n", "---\n", "routes:\n", "upstreams:\n  a: &a {url: x}\n  b: {<<: *a}\n"} {
		if _, err := decode(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Every refusal names file, line and field.
func TestDecodeRefuses(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"unknown field", "listen: :1\nlisten_adress: :2\n", `gateway.yaml:2: listen_adress: unknown field`},
		{"unknown field in a list", "routes:\n  - id: a\n  - id: b\n    costs: 2\n", `gateway.yaml:4: routes[1].costs: unknown field, did you mean cost?`},
		{"unknown field in a map", "upstreams:\n  orders:\n    ulr: x\n", `gateway.yaml:3: upstreams.orders.ulr: unknown field, did you mean url?`},
		{"duplicate field", "listen: :1\nworkers: 2\nlisten: :2\n", `gateway.yaml:3: "listen" is listed twice, first in line 1`},
		{"bare number as duration", "deadline: 60\n", `gateway.yaml:1: deadline: a duration with its unit expected, as in "250ms" or "1m30s"`},
		{"nonsense as duration", "workers: 1\ndeadline: 60x\n", `gateway.yaml:2: deadline: "60x" is no duration: give a number with its unit, as in "250ms" or "1m30s"`},
		{"text as number", "routes:\n  - id: a\n    cost: many\n", `gateway.yaml:3: routes[0].cost: a whole number expected`},
		{"fraction as whole number", "workers: 1.5\n", `gateway.yaml:1: workers: a whole number expected`},
		{"text as boolean", "strict: maybe\n", `gateway.yaml:1: strict: true or false expected`},
		{"mapping as list", "routes:\n  id: a\n", `gateway.yaml:2: routes: a list expected`},
		{"word of a list", "level: loud\n", `gateway.yaml:1: level: "loud" is neither high nor low`},
		{"two faults", "workers: x\nstrict: 1\n", "gateway.yaml:1: workers: a whole number expected\ngateway.yaml:2: strict: true or false expected"},
		{"below an alias", "upstreams:\n  a: &a {url: x, ur: y}\n  b: *a\n", "gateway.yaml:2: upstreams.a.ur: unknown field, did you mean url?\ngateway.yaml:2: upstreams.b.ur: unknown field, did you mean url?"},
		{"syntax", "listen: [1, 2\nworkers: 3\n", `gateway.yaml:`},
		{"two documents", "workers: 1\n---\nworkers: 2\n", `gateway.yaml:3: more than one YAML document`},
		{"validation, present", "workers: 1\nroutes:\n  - id: a\n  - id: b\n    cost: -1\n", `gateway.yaml:5: routes[1].cost: must be at least 0`},
		{"validation, left out", "upstreams:\n  a: {url: x}\n  orders.eu: {}\n", `gateway.yaml:3: upstreams.orders.eu.url: must not be empty`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := decode(tc.text)
			if err == nil {
				t.Fatal("accepted")
			}
			got := err.Error()
			if got != tc.want && (tc.name != "syntax" || !strings.HasPrefix(got, tc.want)) {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestDecodeReportsAllFaultsOfValidationAtOnce(t *testing.T) {
	_, err := decode("routes:\n  - {id: a, cost: -1}\n  - {id: b, cost: -2}\n")
	if got := strings.Count(err.Error(), "must be at least 0"); got != 2 {
		t.Fatalf("%d faults reported, want 2: %v", got, err)
	}
}

// An excerpt of the source would print a secret that somebody wrote where it does not belong.
func TestDecodeErrorsNeverQuoteValues(t *testing.T) {
	_, err := decode("password: hunter2\n")
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Fatalf("error quotes the file: %v", err)
	}
}

func TestLoadNamesTheMissingFile(t *testing.T) {
	err := config.Load(filepath.Join(t.TempDir(), "none.yaml"), &file{})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "none.yaml") {
		t.Fatal(err)
	}
}

// What a file names is looked up from where the file is, not from where the program was started.
func TestRelativePathsBelongToTheFile(t *testing.T) {
	type entry struct {
		File string `yaml:"file"`
	}
	type paths struct {
		RulesFile string           `yaml:"rules_file"`
		Profile   string           `yaml:"profile"`
		One       *entry           `yaml:"one"`
		List      []entry          `yaml:"list"`
		Map       map[string]entry `yaml:"map"`
	}
	for name, dir := range map[string]string{"/etc/partidor/gateway.yaml": "/etc/partidor/", "conf/gateway.yaml": "conf/", "gateway.yaml": ""} {
		doc, err := config.Parse(name, []byte("rules_file: r.yaml\nprofile: p\none: {file: ../up}\nlist: [{file: /absolute}, {}]\nmap: {a: {file: m}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		var got paths
		if err := doc.Decode(&got); err != nil {
			t.Fatal(err)
		}
		want := paths{RulesFile: dir + "r.yaml", Profile: "p", One: &entry{filepath.Join(dir, "../up")},
			List: []entry{{"/absolute"}, {}}, Map: map[string]entry{"a": {dir + "m"}}}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("from file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PARTIDOR_TEST_SECRET", "from env")
	for _, tc := range []struct {
		file, env, want string
		fails           bool
	}{
		{"", "", "", false},
		{path, "", "from file", false},
		{"", "PARTIDOR_TEST_SECRET", "from env", false},
		{path, "PARTIDOR_TEST_SECRET", "", true},
		{path + ".none", "", "", true},
		{"", "PARTIDOR_TEST_UNSET", "", true},
	} {
		got, err := config.Secret("password", tc.file, tc.env)
		if got != tc.want || (err != nil) != tc.fails {
			t.Errorf("Secret(%q, %q) = %q, %v", tc.file, tc.env, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("listen: :1\nroutes: [{id: a}]\n")
	f.Add("a: &x {b: *x}\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := decode(text)
		if err != nil && !strings.Contains(err.Error(), "gateway.yaml") {
			t.Fatalf("error without the file's name: %v", err)
		}
	})
}
