package config

import (
	"fmt"
	"os"
	"strings"
)

// Secret reads the secret that a pair of fields such as password_file and password_env names: the content of file
// without its last line break, or the environment variable env. With neither given it is "". The field prefix is used
// in errors only; the secret itself never is. Secrets are read when a connection is made, so a rotated file is picked
// up by the next one.
func Secret(field, file, env string) (string, error) {
	switch {
	case file != "" && env != "":
		return "", fmt.Errorf("%s_file and %s_env: give one, not both", field, field)
	case file != "":
		b, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("%s_file: %w", field, err)
		}
		s := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
		if s == "" {
			return "", fmt.Errorf("%s_file: %s is empty", field, file)
		}
		return s, nil
	case env != "":
		s, ok := os.LookupEnv(env)
		if !ok || s == "" {
			return "", fmt.Errorf("%s_env: %s is not set", field, env)
		}
		return s, nil
	}
	return "", nil
}
