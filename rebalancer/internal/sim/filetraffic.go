package sim

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// fileTraffic is one part of a region's load: exactly one kind, perhaps with noise. Parts add up.
type fileTraffic struct {
	Constant *float64     `yaml:"constant"`
	Diurnal  *fileDiurnal `yaml:"diurnal"`
	Steps    []filePoint  `yaml:"steps"`
	Ramp     []filePoint  `yaml:"ramp"`
	OnOff    *fileOnOff   `yaml:"on_off"`
	Square   *fileSquare  `yaml:"square"`
	// Trace is a CSV file of "seconds,requests per second", beside the scenario file.
	Trace string     `yaml:"trace"`
	Noise *fileNoise `yaml:"noise"`
}

type fileDiurnal struct {
	Mean      float64       `yaml:"mean"`
	Amplitude float64       `yaml:"amplitude"`
	Phase     float64       `yaml:"phase"`
	Period    time.Duration `yaml:"period"`
}

type filePoint struct {
	At   time.Duration `yaml:"at"`
	Rate float64       `yaml:"rate"`
}

type fileOnOff struct {
	On      float64       `yaml:"on"`
	Off     float64       `yaml:"off"`
	MeanOn  time.Duration `yaml:"mean_on"`
	MeanOff time.Duration `yaml:"mean_off"`
}

type fileSquare struct {
	High   float64       `yaml:"high"`
	Low    float64       `yaml:"low"`
	Phase  float64       `yaml:"phase"`
	Period time.Duration `yaml:"period"`
}

type fileNoise struct {
	Sigma       float64       `yaml:"sigma"`
	Correlation time.Duration `yaml:"correlation"`
}

func (t *fileTraffic) validate() error {
	kinds := 0
	var rates []float64
	has := func(there bool, values ...float64) {
		if there {
			kinds++
			rates = append(rates, values...)
		}
	}
	has(t.Trace != "")
	if t.Constant != nil {
		has(true, *t.Constant)
	}
	if d := t.Diurnal; d != nil {
		has(true, d.Mean, d.Amplitude)
		if d.Period <= 0 {
			return errors.New("diurnal needs a period")
		}
	}
	if s := t.Square; s != nil {
		has(true, s.High, s.Low)
		if s.Period <= 0 {
			return errors.New("square needs a period")
		}
	}
	if o := t.OnOff; o != nil {
		has(true, o.On, o.Off)
		if o.MeanOn <= 0 || o.MeanOff <= 0 {
			return errors.New("on_off needs mean_on and mean_off")
		}
	}
	for _, points := range [][]filePoint{t.Steps, t.Ramp} {
		has(points != nil)
		for i, p := range points {
			rates = append(rates, p.Rate)
			if i > 0 && p.At <= points[i-1].At {
				return errors.New("points must be in order of time")
			}
		}
	}
	if kinds != 1 {
		return errors.New("say exactly one of constant, diurnal, steps, ramp, on_off, square and trace")
	}
	for _, r := range rates {
		if math.IsNaN(r) || r < 0 || r > 1e9 {
			return fmt.Errorf("rate %v, must be from 0 to 1e9", r)
		}
	}
	if n := t.Noise; n != nil && (!(n.Sigma >= 0 && n.Sigma <= 5) || n.Correlation < time.Second) {
		return errors.New("noise needs a sigma from 0 to 5 and a correlation of at least 1s")
	}
	return nil
}

func (t *fileTraffic) traffic(folder string) (out Traffic, err error) {
	switch {
	case t.Constant != nil:
		out = Constant(*t.Constant)
	case t.Diurnal != nil:
		out = Diurnal{Mean: t.Diurnal.Mean, Amplitude: t.Diurnal.Amplitude, Phase: t.Diurnal.Phase, Period: t.Diurnal.Period}
	case t.Square != nil:
		out = Square{High: t.Square.High, Low: t.Square.Low, Phase: t.Square.Phase, Period: t.Square.Period}
	case t.OnOff != nil:
		o := t.OnOff
		out = OnOff{On: o.On, Off: o.Off, MeanOn: o.MeanOn, MeanOff: o.MeanOff, MaxOn: 30 * o.MeanOn, MaxOff: 30 * o.MeanOff, Alpha: 1.5}
	case t.Steps != nil:
		out = Steps(points(t.Steps))
	case t.Ramp != nil:
		out = Ramp(points(t.Ramp))
	default:
		if out, err = readTrace(filepath.Join(folder, t.Trace)); err != nil {
			return nil, err
		}
	}
	if t.Noise != nil {
		out = Noisy{Traffic: out, Sigma: t.Noise.Sigma, Correlation: t.Noise.Correlation}
	}
	return out, nil
}

func points(in []filePoint) []Point {
	out := make([]Point, len(in))
	for i, p := range in {
		out[i] = Point(p)
	}
	return out
}

// readTrace reads a recorded load: two columns, seconds in rising order and requests per second, which hold until the
// next line. A first line that is no number is a header.
func readTrace(path string) (Steps, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	r := csv.NewReader(f)
	r.FieldsPerRecord = 2
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("trace %s: %w", path, err)
	}
	var out Steps
	for i, row := range rows {
		at, errAt := strconv.ParseFloat(row[0], 64)
		rate, errRate := strconv.ParseFloat(row[1], 64)
		if i == 0 && errAt != nil {
			continue
		}
		p := Point{time.Duration(at * float64(time.Second)), rate}
		if errAt != nil || errRate != nil || !(at >= 0 && at < 1e9) || !(rate >= 0 && rate <= 1e9) || len(out) > 0 && p.At <= out[len(out)-1].At {
			return nil, fmt.Errorf("trace %s: line %d: %q is no \"seconds,rate\" after the one before", path, i+1, row)
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("trace %s: no points", path)
	}
	return out, nil
}
