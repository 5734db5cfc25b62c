package rules_test

import (
	"os"
	"path/filepath"
	"testing"

	"partidor.dev/partidor/gateway/internal/control/rules"
	"partidor.dev/partidor/shared/limit"
)

// A file that is read between being cut off and being written is no set of rules: taken as one it would refuse every key, and
// the text that follows would have to have a higher revision than it.
func TestEmptyFileIsNoRules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	f := rules.NewFile(path, "eu", 50_000)
	for _, text := range []string{"", "# to come\n", "revision: 1\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		inc, err := f.Read(t.Context(), limit.Revision{})
		if full := text == "revision: 1\n"; full != (err == nil) {
			t.Errorf("%q: %+v, %v", text, inc, err)
		}
	}
}
