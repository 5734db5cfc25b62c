package sim

import "io"

// WriteHTML writes one self-contained page.
func (r *Report) WriteHTML(io.Writer, []Scenario) error { return nil }
