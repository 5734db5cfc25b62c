package config

import (
	"fmt"
	"os"
	"strings"
)

// Secret reads the secret that a pair of fields such as password_file and password_env names: the content of file
// without its last line break, or the environment variable env. With neither given it is "". The field prefix is used
// in errors only, which are Faults; the secret itself never is. Secrets are read when a connection is made, so a rotated file is picked
// up by the next one.
func Secret(field, file, env string) (string, error) {
	fault := func(source, format string, args ...any) (string, error) {
		return "", &Fault{Field: field + source, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case file != "" && env != "":
		return fault("_file", "give this or %s_env, not both", field)
	case file != "":
		b, err := os.ReadFile(file)
		if err != nil {
			return fault("_file", "%w", err)
		}
		s := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
		if s == "" {
			return fault("_file", "%s is empty", file)
		}
		return s, nil
	case env != "":
		s, ok := os.LookupEnv(env)
		if !ok || s == "" {
			return fault("_env", "%s is not set", env)
		}
		return s, nil
	}
	return "", nil
}
