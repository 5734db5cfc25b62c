package config

import (
	"path/filepath"
	"reflect"
	"strings"
)

// anchorPaths makes the relative paths in v absolute ones of dir: what a file names is found whatever directory the
// program was started in. Paths are the texts of fields named file, or ending in _file.
func anchorPaths(v reflect.Value, dir string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			anchorPaths(v.Elem(), dir)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			anchorPaths(v.Index(i), dir)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			entry := reflect.New(v.Type().Elem()).Elem() // what is in a map cannot be set in place
			entry.Set(v.MapIndex(key))
			anchorPaths(entry, dir)
			v.SetMapIndex(key, entry)
		}
	case reflect.Struct:
		for f, value := range v.Fields() {
			if !f.IsExported() {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if value.Kind() != reflect.String || name != "file" && !strings.HasSuffix(name, "_file") {
				anchorPaths(value, dir)
			} else if path := value.String(); path != "" && !filepath.IsAbs(path) {
				value.SetString(filepath.Join(dir, path))
			}
		}
	}
}
