package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/goccy/go-yaml"
)

func (t *tool) checkOutput() error {
	switch t.output {
	case "table", "json", "yaml":
		return nil
	}
	return usageError{fmt.Errorf("--output: %q, must be table, json or yaml", t.output)}
}

// show prints v as JSON or YAML where that is asked for, else calls table.
func (t *tool) show(v any, table func()) error {
	switch t.output {
	case "json":
		enc := json.NewEncoder(t.out)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	case "yaml":
		raw, err := json.Marshal(v) // so that both have the same names
		if err != nil {
			return err
		}
		out, err := yaml.JSONToYAML(raw)
		if err != nil {
			return err
		}
		_, err = t.out.Write(out)
		return err
	}
	table()
	return nil
}

// table prints rows in columns.
func (t *tool) table(header string, rows [][]string) {
	w := tabwriter.NewWriter(t.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, strings.ReplaceAll(header, " ", "\t"))
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // to a terminal or a pipe that is gone
}

// more says that a list was cut.
func (t *tool) more(more bool, limit int) {
	if more {
		fmt.Fprintf(t.err, "only the first %d; --limit 0 shows all\n", limit)
	}
}

// text of a field, "" where it is missing.
func text(i item, name string) string {
	switch v := i[name].(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		raw, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(raw)
	}
}

// or is s, or alternative where s is empty.
func or(s, alternative string) string {
	if s == "" {
		return alternative
	}
	return s
}

// percent of a share in parts per million.
func percent(i item, name string) string {
	v, ok := i[name].(float64)
	if !ok {
		return ""
	}
	return strconv.FormatFloat(v/10_000, 'f', -1, 64) + "%"
}

// about is percent to a hundredth, where moving shares would fill the table with digits.
func about(i item, name string) string {
	v, ok := i[name].(float64)
	if !ok {
		return ""
	}
	return strconv.FormatFloat(math.Round(v/100)/100, 'f', -1, 64) + "%"
}

// rate with three digits, never with an exponent.
func rate(i item, name string) string {
	v, _ := i[name].(float64)
	if math.Abs(v) >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// ago is a time as people say it.
func ago(i item, name string) string {
	at, err := time.Parse(time.RFC3339Nano, text(i, name))
	if err != nil {
		return ""
	}
	d := time.Since(at)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return at.Local().Format("2006-01-02 15:04")
}

// objects of a field that is a list.
func objects(i item, name string) []item {
	list, _ := i[name].([]any)
	out := make([]item, 0, len(list))
	for _, v := range list {
		if o, ok := v.(item); ok {
			out = append(out, o)
		}
	}
	return out
}

// object of a field, empty where it is missing.
func object(i item, name string) item {
	o, _ := i[name].(item)
	return o
}
