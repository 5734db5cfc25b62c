package api

import (
	"encoding"
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// openAPI describes the API, made of the list of endpoints and the types that they read and write.
func (s *Server) openAPI(*http.Request) (any, error) {
	d := &document{schemas: map[string]any{}}
	paths := map[string]map[string]any{}
	for _, e := range s.endpoints() {
		if paths[e.path] == nil {
			paths[e.path] = map[string]any{}
		}
		paths[e.path][strings.ToLower(e.method)] = d.operation(&e)
	}
	return map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": "Partidor rebalancer", "version": s.Version},
		"paths":   paths,
		"components": map[string]any{
			"schemas":         d.schemas,
			"securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}},
		},
		"security": []any{map[string]any{"token": []string{}}},
	}, nil
}

type document struct{ schemas map[string]any }

var inPath = regexp.MustCompile(`\{(\w+)\}`)

func (d *document) operation(e *endpoint) map[string]any {
	parameters := []any{}
	for _, m := range inPath.FindAllStringSubmatch(e.path, -1) {
		parameters = append(parameters, parameterOf(m[1], "path", true))
	}
	for _, q := range e.query {
		parameters = append(parameters, parameterOf(q, "query", false))
	}
	op := map[string]any{
		"summary":    e.summary,
		"parameters": parameters,
		"responses": map[string]any{
			"default": map[string]any{"description": "Problem", "content": map[string]any{
				"application/problem+json": map[string]any{"schema": d.schema(reflect.TypeFor[Problem]())}}},
		},
	}
	switch e.role {
	case Operator:
		op["x-role"] = "operator"
	case Viewer:
		op["x-role"] = "viewer"
	default:
		op["security"] = []any{}
	}
	responses, _ := op["responses"].(map[string]any)
	if e.answer == nil {
		responses["204"] = map[string]any{"description": "Done"}
	} else {
		responses["200"] = map[string]any{"description": "OK", "content": d.content(e.answer)}
	}
	if e.body != nil {
		op["requestBody"] = map[string]any{"required": true, "content": d.content(e.body)}
	}
	return op
}

func parameterOf(name, in string, required bool) map[string]any {
	return map[string]any{"name": name, "in": in, "required": required, "schema": map[string]any{"type": "string"}}
}

func (d *document) content(v any) map[string]any {
	return map[string]any{"application/json": map[string]any{"schema": d.schema(reflect.TypeOf(v))}}
}

var (
	texts = reflect.TypeFor[encoding.TextMarshaler]()
	raw   = reflect.TypeFor[json.RawMessage]()
	times = reflect.TypeFor[time.Time]()
)

// schema of a type as encoding/json writes it. Structs with a name are described once.
func (d *document) schema(t reflect.Type) map[string]any {
	switch {
	case t == raw:
		return map[string]any{}
	case t == times:
		return map[string]any{"type": "string", "format": "date-time"}
	case t.Implements(texts):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem())
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Struct:
		name := schemaName(t)
		if _, known := d.schemas[name]; !known {
			d.schemas[name] = nil // a type that holds itself ends here
			d.schemas[name] = d.object(t)
		}
		return map[string]any{"$ref": "#/components/schemas/" + name}
	default:
		return map[string]any{"type": "integer"}
	}
}

func (d *document) object(t reflect.Type) map[string]any {
	properties, names := map[string]any{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, required, ok := fieldName(f)
		if !ok {
			continue
		}
		properties[name] = d.schema(f.Type)
		if required {
			names = append(names, name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": names, "additionalProperties": false}
}

// schemaName turns Page[…/ledger.Rule] into Page_Rule.
func schemaName(t reflect.Type) string {
	var b strings.Builder
	for i, part := range strings.FieldsFunc(t.Name(), func(r rune) bool { return r == '[' || r == ']' }) {
		if i > 0 {
			b.WriteByte('_')
		}
		b.WriteString(part[strings.LastIndexAny(part, "./")+1:])
	}
	if pkg := t.PkgPath(); t.Name() != "" && !strings.HasSuffix(pkg, "/api") {
		return pkg[strings.LastIndexByte(pkg, '/')+1:] + "_" + b.String()
	}
	return b.String()
}
