package sim

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"
	"time"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// section is one scenario on the page.
type section struct {
	Name, About string
	Summaries   []Summary
	Charts      []chart
}

// WriteHTML writes one self-contained page: tables, and plots of the results that carry samples.
func (r *Report) WriteHTML(w io.Writer, scenarios []Scenario) error {
	var sections []section
	for i := range scenarios {
		s := &scenarios[i]
		sec := section{Name: s.Name, About: s.About}
		for _, sum := range r.Summaries {
			if sum.Scenario == s.Name {
				sec.Summaries = append(sec.Summaries, sum)
			}
		}
		for j := range r.Results {
			if res := &r.Results[j]; res.Scenario == s.Name && len(res.Samples) > 1 {
				sec.Charts = append(sec.Charts, chartsOf(s, res)...)
			}
		}
		sections = append(sections, sec)
	}
	if err := page.Execute(w, sections); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// chart is one picture in the coordinates of its SVG.
type chart struct {
	Title         string
	Width, Height int
	Grid          []gridLine
	Lines         []line
	Limit         template.HTMLAttr
}

type gridLine struct {
	X1, Y1, X2, Y2, TextX, TextY string
	Anchor, Label                string
}

type line struct {
	Name   string
	Color  template.CSS
	Points template.HTMLAttr
}

// colors of regions, told apart also by people who see red and green alike.
var colors = []template.CSS{"#3b6fd4", "#e07b39", "#2a9d8f", "#9a5ec9", "#c2a500", "#d1477a", "#5b7083", "#7fb800"}

const (
	chartWidth, chartHeight   = 900, 190
	leftMargin, bottomMargin  = 48, 22
	rightMargin, topMargin    = 10, 8
	verticalLines, horizontal = 6, 4
)

// chartsOf draws what each region was offered and admitted, and its share, over time.
func chartsOf(s *Scenario, r *Result) []chart {
	offered, admitted, shares := series(s, r)
	return []chart{
		draw(r.Strategy+": offered, requests/s", s, r, offered, s.rate(), s.rate()),
		draw(r.Strategy+": admitted, requests/s", s, r, admitted, s.rate(), s.rate()),
		draw(r.Strategy+": share, %", s, r, shares, 100, 0),
	}
}

func series(s *Scenario, r *Result) (offered, admitted, shares [][]float64) {
	for i := range s.Regions {
		var o, a, h []float64
		for _, sample := range r.Samples {
			o = append(o, sample.Offered[i])
			a = append(a, sample.Admitted[i])
			h = append(h, sample.Shares[i].Percent())
		}
		offered, admitted, shares = append(offered, o), append(admitted, a), append(shares, h)
	}
	return offered, admitted, shares
}

// draw makes a chart that reaches at least to least; a limit above 0 is drawn as a dashed line.
func draw(title string, s *Scenario, r *Result, values [][]float64, least, limit float64) chart {
	top := least
	for _, v := range values {
		for _, y := range v {
			top = max(top, y)
		}
	}
	c := chart{Title: title, Width: chartWidth, Height: chartHeight}
	x := func(t time.Duration) string {
		return num(leftMargin + float64(t)/float64(s.Duration)*(chartWidth-leftMargin-rightMargin))
	}
	y := func(v float64) string {
		return num(chartHeight - bottomMargin - v/top*(chartHeight-bottomMargin-topMargin))
	}
	for i := range horizontal + 1 {
		v := top * float64(i) / horizontal
		c.Grid = append(c.Grid, gridLine{
			X1: x(0), X2: x(s.Duration), Y1: y(v), Y2: y(v), TextX: num(leftMargin - 6), TextY: y(v), Anchor: "end", Label: short(v),
		})
	}
	for i := range verticalLines + 1 {
		t := s.Duration * time.Duration(i) / verticalLines
		c.Grid = append(c.Grid, gridLine{
			X1: x(t), X2: x(t), Y1: y(0), Y2: y(top), TextX: x(t), TextY: num(chartHeight - 6), Anchor: "middle", Label: t.Round(time.Second).String(),
		})
	}
	if limit > 0 {
		c.Limit = template.HTMLAttr(x(0) + "," + y(limit) + " " + x(s.Duration) + "," + y(limit)) //nolint:gosec // numbers
	}
	for i, v := range values {
		var points []byte
		for j, sample := range r.Samples {
			points = append(points, x(sample.At)+","+y(v[j])+" "...)
		}
		c.Lines = append(c.Lines, line{Name: s.Regions[i].Name, Color: colors[i%len(colors)], Points: template.HTMLAttr(points)}) //nolint:gosec // numbers
	}
	return c
}

func num(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// short is a number for an axis.
func short(v float64) string {
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
