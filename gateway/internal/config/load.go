package config

import (
	"fmt"
	"os"

	"partidor.dev/partidor/shared/config"
)

// Check is a further judgement of a configuration that Validate has accepted, such as whether its routes contradict each
// other. Its errors name their fields as those of Validate do.
type Check func(*Config) error

// Load reads the file at path, completes it and judges it as a whole. Every fault is reported, with file, line and field.
func Load(path string, checks ...Check) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(path, data, checks...)
}

// Parse is Load for text that is at hand already; name stands for the file in errors.
func Parse(name string, data []byte, checks ...Check) (*Config, error) {
	doc, err := config.Parse(name, data)
	if err != nil {
		return nil, err
	}
	c := new(Config)
	if err := doc.Decode(c); err != nil {
		return nil, err
	}
	c.document = doc
	for _, check := range checks {
		if err := doc.Locate(check(c)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Locate adds file and line to what is found wrong with a field later, such as a file or a server that it names.
func (c *Config) Locate(err error) error {
	if c.document == nil {
		return err
	}
	return c.document.Locate(err)
}
