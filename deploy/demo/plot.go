package main

import (
	"fmt"
	"html"
	"os"
	"strings"
)

// The measures of a plot, in pixels: one strip per series, one under the other.
const (
	plotWidth, stripHeight = 900, 110
	plotLeft, plotTop      = 60, 24
)

// plot draws what a soak saw, faults as lines across, as one picture that needs nothing else.
func (s *soak) plot(path string) error {
	if err := os.WriteFile(path, []byte(s.svg()), 0o644); err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	return nil
}

func (s *soak) svg() string {
	strips := series
	strips = append(strips[:len(strips):len(strips)], struct {
		name  string
		slack float64
		of    func(soakSample) float64
	}{"admitted per second", 0, func(x soakSample) float64 { return x.PerSecond }})
	var b strings.Builder
	height := plotTop + len(strips)*stripHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", plotWidth, height)
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	last := s.samples[len(s.samples)-1].Seconds
	across := func(seconds float64) float64 { return plotLeft + seconds/last*(plotWidth-plotLeft-10) }
	for i, v := range strips {
		most := 1.0
		for _, x := range s.samples {
			most = max(most, v.of(x))
		}
		bottom := float64(plotTop + (i+1)*stripHeight - 12)
		var points []string
		for _, x := range s.samples {
			points = append(points, fmt.Sprintf("%.1f,%.1f", across(x.Seconds), bottom-v.of(x)/most*(stripHeight-30)))
		}
		fmt.Fprintf(&b, `<text x="4" y="%.0f">%s, at most %.0f</text>`+"\n", bottom-stripHeight+26, html.EscapeString(v.name), most)
		fmt.Fprintf(&b, `<path d="M%d %.0fH%d" stroke="#bbb"/>`+"\n", plotLeft, bottom, plotWidth-10)
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="#1467b3" stroke-width="1.5"/>`+"\n", strings.Join(points, " "))
	}
	for _, f := range s.faults {
		fmt.Fprintf(&b, `<path d="M%.1f %dV%d" stroke="#c33" stroke-dasharray="2 3"><title>%s</title></path>`+"\n", across(f.Seconds), plotTop, height, html.EscapeString(f.What))
	}
	fmt.Fprintf(&b, `<text x="4" y="14">%.0f s under load in two regions; dashed: a fault</text>`+"\n</svg>\n", last)
	return b.String()
}
