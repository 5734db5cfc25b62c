package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	o := defaults
	flag.DurationVar(&o.round, "round", o.round, "length of one round")
	flag.IntVar(&o.rounds, "rounds", o.rounds, "rounds per subject and load")
	flag.StringVar(&o.out, "out", "", "also write the report to this file, as JSON")
	flag.StringVar(&o.page, "md", "", "also write the report to this file, as Markdown")
	flag.StringVar(&o.only, "only", "", "comma-separated subjects of the limiter's sections; all if empty")
	flag.StringVar(&o.sections, "sections", "", "comma-separated sections, of "+strings.Join(sectionNames(), ", ")+"; all if empty")
	flag.StringVar(&o.profile, "profile", "", "record cpu.pprof and heap.pprof of this process into this directory")
	flag.DurationVar(&o.budget, "budget", o.budget, "begin nothing more after this `time`")
	page := flag.String("page", "", "measure nothing: bring the figures of this capacity page up to the report in -from")
	from := flag.String("from", ".cache/bench.json", "report of an earlier run, for -page")
	quick := flag.Bool("quick", false, "see that everything runs; the numbers mean nothing")
	flag.Parse()
	if *page != "" {
		if err := rewritePage(*page, *from); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if *quick {
		o.hurry()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	end, err := record(o.profile)
	if err == nil {
		err = errors.Join(run(ctx, os.Stdout, o), end())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are what a run is made of.
type options struct {
	round    time.Duration
	rounds   int
	out      string
	page     string
	only     string
	sections string
	profile  string
	loads    []load
	callers  int  // of the proxies' sections
	brief    bool // parts run once and only the small ones
	// budget is after how long nothing more is begun; what is left out is said.
	budget time.Duration
}

// defaults take about ten minutes on two cores.
var defaults = options{
	round: 1500 * time.Millisecond, rounds: 3, callers: 64, budget: 13 * time.Minute,
	loads: []load{{Keys: 10_000, Callers: 32}, {Keys: 10_000, Callers: 128}, {Keys: 10_000, Callers: 512}, {Keys: 1, Callers: 32}, {Keys: 1, Callers: 128}},
}

// hurry makes a run of seconds of o.
func (o *options) hurry() {
	o.round, o.rounds, o.callers, o.brief = 50*time.Millisecond, 1, 4, true
	o.loads = []load{{Keys: 100, Callers: 4}}
}

// section is one part of a run; it adds to the report what it measures.
type section struct {
	name string
	run  func(ctx context.Context, o options, r *report) error
}

// sections in the order in which they run.
var sections = []section{
	{"limiter", runLimiter}, {"gubernator", runGubernator}, {"shapes", runShapes}, {"cluster", runCluster},
	{"proxies", runProxies}, {"pace", runPace}, {"fleet", runFleet}, {"parts", runParts},
}

func sectionNames() []string {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	return names
}

// chosen tells whether name is in a comma-separated list, in which nothing means everything.
func chosen(list, name string) bool {
	return list == "" || strings.Contains(","+list+",", ","+name+",")
}

func run(ctx context.Context, w io.Writer, o options) error {
	r := &report{When: time.Now(), Machine: machine(), Versions: versions(), Round: o.round, Rounds: o.rounds}
	for _, s := range sections {
		if !chosen(o.sections, s.name) {
			continue
		}
		began := time.Now()
		if r.late(o, "section "+s.name) {
			continue
		}
		if err := s.run(ctx, o, r); err != nil {
			return fmt.Errorf("section %s: %w", s.name, err)
		}
		r.Took = append(r.Took, took{s.name, time.Since(began).Seconds()})
	}
	progress("")
	r.judge()
	if o.out != "" {
		b, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the report: %w", err)
		}
		if err := os.WriteFile(o.out, append(b, '\n'), 0o644); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	if o.page != "" {
		f, err := os.Create(o.page)
		if err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		defer f.Close()
		w = io.MultiWriter(w, f)
	}
	return r.markdown(w)
}

// late tells whether the time for beginning anything is over, and notes what is left out by that.
func (r *report) late(o options, what string) bool {
	if time.Since(r.When) < o.budget {
		return false
	}
	r.LeftOut = append(r.LeftOut, what)
	return true
}

// progress tells on the terminal what is being measured.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "\r%-78s\r", fmt.Sprintf(format, args...))
}
