package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Validator is implemented by configurations that can judge themselves as a whole. Validate reports every fault at
// once (errors.Join or Faults), each a FieldError where it can.
type Validator interface {
	Validate() error
}

// Defaulter is implemented by configurations whose zero values stand for defaults.
type Defaulter interface {
	SetDefaults()
}

// Load reads the file at path into the struct that into points to, completes it if it is a Defaulter and judges it if it
// is a Validator. The error holds a *Fault for everything that is wrong.
func Load(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	doc, err := Parse(path, data)
	if err != nil {
		return err
	}
	return doc.Decode(into)
}

// Document is one parsed file. It knows which line each field stands on.
type Document struct {
	name string
	root ast.Node // nil for an empty file
}

// Parse checks the syntax of data. name is used in errors.
func Parse(name string, data []byte) (*Document, error) {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, (&Document{name: name}).refused(err)
	}
	doc := &Document{name: name}
	for _, d := range file.Docs {
		if d.Body == nil {
			continue
		}
		if doc.root != nil {
			return nil, &Fault{File: name, Line: d.Body.GetToken().Position.Line, Err: errors.New("more than one YAML document")}
		}
		doc.root = d.Body
	}
	return doc, nil
}

// Decode fills into, completes it if it is a Defaulter and judges it if it is a Validator. Relative paths in it are those of
// the file's own directory.
func (d *Document) Decode(into any) error {
	if d.root != nil {
		if err := check(d.name, d.root, reflect.TypeOf(into)); err != nil {
			return err
		}
		if err := yaml.NodeToValue(d.root, into, yaml.Strict()); err != nil {
			return d.refused(err)
		}
		anchorPaths(reflect.ValueOf(into), filepath.Dir(d.name))
	}
	if c, ok := into.(Defaulter); ok {
		c.SetDefaults()
	}
	if v, ok := into.(Validator); ok {
		return d.Locate(v.Validate())
	}
	return nil
}

// DecodeNode is Decode for a part of a file, for types that read YAML themselves. Its faults name lines, and fields below the part.
func DecodeNode(n ast.Node, into any) error {
	if err := check("", n, reflect.TypeOf(into)); err != nil {
		return err
	}
	return yaml.NodeToValue(n, into, yaml.Strict())
}

// Locate adds file and line to every FieldError in err; other errors get the file alone. It keeps what errors.Is and
// errors.As find. Nil stays nil.
func (d *Document) Locate(err error) error {
	var list []error
	for _, e := range flatten(err) {
		var fe FieldError
		if !errors.As(e, &fe) {
			list = append(list, &Fault{File: d.name, Err: e})
			continue
		}
		fault := Fault{File: d.name, Line: d.Line(fe.FieldPath())}
		if own, ok := fe.(*Fault); ok {
			fault.Field, fault.Err = own.Field, own.Err
		} else {
			fault.Err = fe // it prints its own field
		}
		list = append(list, &fault)
	}
	return errors.Join(list...)
}

// Line is where field stands, or where the nearest field around it does if it is left out; 0 for an empty file.
func (d *Document) Line(field string) int {
	if d.root == nil {
		return 0
	}
	return lineOf(d.root, field)
}

// twice is how the YAML library says that a name is listed twice.
var twice = regexp.MustCompile(`^mapping key (".*") already defined at \[(\d+):\d+\]$`)

// refused turns an error of the YAML library into a Fault without its excerpt of the source, which may hold a secret
// that somebody wrote where it does not belong.
func (d *Document) refused(err error) error {
	fault := &Fault{File: d.name, Err: err}
	var at yaml.Error
	if !errors.As(err, &at) {
		return fault
	}
	fault.Err = errors.New(twice.ReplaceAllString(at.GetMessage(), "$1 is listed twice, first in line $2"))
	if tk := at.GetToken(); tk != nil {
		fault.Line = tk.Position.Line
		if d.root != nil {
			fault.Field = fieldAt(d.root, tk)
		}
	}
	return fault
}
