package sim

import "errors"

// LoadScenario reads a scenario file.
func LoadScenario(string) (Scenario, error) { return Scenario{}, errors.New("not yet") }
