package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yannh/kubeconform/pkg/validator"
)

// kubernetesVersions are the releases whose own description of their API the chart is held against: one of the oldest that Chart.yaml
// allows, and a new one. A release is a Go module, of which one file is read.
var kubernetesVersions = []string{"v1.29.0", "v1.36.0"}

// What kubeconform -strict says of every object of every example, with schemas made from the API of Kubernetes itself: fields that
// there are not, fields that must be there, values of another type.
func TestObjectsConform(t *testing.T) {
	for _, version := range kubernetesVersions {
		dir := schemas(t, version)
		v, err := validator.New([]string{dir + "/{{ .ResourceKind }}{{ .KindSuffix }}.json"}, validator.Opts{
			Strict: true, KubernetesVersion: strings.TrimPrefix(version, "v"),
			// Not of Kubernetes itself; strict_test.go holds it against its type.
			SkipKinds: map[string]struct{}{"ServiceMonitor": {}},
		})
		if err != nil {
			t.Fatal(err)
		}
		faults := func(name, text string) (n int, all []string) {
			for _, r := range v.Validate(name, io.NopCloser(strings.NewReader(text))) {
				switch r.Status {
				case validator.Valid:
					n++
				case validator.Empty, validator.Skipped:
				default:
					all = append(all, r.Err.Error())
				}
			}
			return n, all
		}
		for _, bad := range []string{
			"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {prots: []}\n",
			"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{name: web}]}\n", // port is missing
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: three}\n",
		} {
			if _, all := faults("bad", bad); len(all) == 0 {
				t.Fatalf("%s: this passes:\n%s", version, bad)
			}
		}
		for _, name := range examples(t) {
			manifests, err := render(t, name)
			if err != nil {
				t.Fatal(err)
			}
			n, all := faults(name, joined(manifests))
			for _, fault := range all {
				t.Errorf("%s on %s: %s", name, version, fault)
			}
			if n < 5 {
				t.Errorf("%s on %s: only %d objects were judged", name, version, n)
			}
		}
	}
}

// schemas writes one JSON schema per kind of a release, complete in itself and strict, under the names that kubeconform looks for,
// such as deployment-apps-v1.json.
func schemas(t *testing.T, version string) string {
	t.Helper()
	var module struct{ Dir, Error string }
	cmd := exec.Command("go", "mod", "download", "-json", "k8s.io/kubernetes@"+version)
	cmd.Dir = t.TempDir() // in no module
	out, err := cmd.Output()
	if jsonErr := json.Unmarshal(out, &module); err != nil || jsonErr != nil || module.Error != "" {
		t.Fatalf("the module k8s.io/kubernetes, for its description of the API: %v %v %s", err, jsonErr, module.Error)
	}
	data, err := os.ReadFile(filepath.Join(module.Dir, "api/openapi-spec/swagger.json"))
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Definitions map[string]map[string]any `json:"definitions"`
	}
	if err := json.Unmarshal(data, &api); err != nil {
		t.Fatal(err)
	}
	for name, d := range api.Definitions {
		if _, ok := d["properties"]; ok && d["additionalProperties"] == nil {
			d["additionalProperties"] = false
		}
		// Both are written as a number or as text; the description can only say one.
		if d["format"] == "int-or-string" || strings.HasSuffix(name, ".api.resource.Quantity") {
			api.Definitions[name] = map[string]any{"type": []string{"string", "number"}}
		}
	}
	dir := t.TempDir()
	for name, d := range api.Definitions {
		var kinds []struct{ Group, Version, Kind string }
		of, err := json.Marshal(d["x-kubernetes-group-version-kind"])
		if err != nil || json.Unmarshal(of, &kinds) != nil || len(kinds) != 1 {
			continue // no kind of its own
		}
		k := kinds[0]
		group, _, _ := strings.Cut(k.Group, ".")
		parts := slices.DeleteFunc([]string{k.Kind, group, k.Version}, func(s string) bool { return s == "" })
		write(t, filepath.Join(dir, strings.ToLower(strings.Join(parts, "-"))+".json"), alone(t, name, api.Definitions))
	}
	return dir
}

// alone is the definition of a name with all that it refers to.
func alone(t *testing.T, name string, all map[string]map[string]any) string {
	t.Helper()
	const ref = `"#/definitions/`
	needed := map[string]json.RawMessage{}
	for open := []string{name}; len(open) > 0; {
		next := open[len(open)-1]
		open = open[:len(open)-1]
		if needed[next] != nil {
			continue
		}
		text, err := json.Marshal(all[next])
		if err != nil {
			t.Fatal(err)
		}
		needed[next] = text
		for _, part := range bytes.Split(text, []byte(ref))[1:] {
			open = append(open, string(part[:bytes.IndexByte(part, '"')]))
		}
	}
	text, err := json.Marshal(map[string]any{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": fmt.Sprintf("#/definitions/%s", name), "definitions": needed})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
