// Package config reads the services' YAML files strictly: an unknown field, a field given twice, a value of the wrong
// type and everything the file's own Validate refuses is an error that names file, line and field.
//
// Durations are Go strings such as "5ms"; a bare number is refused, since nobody can tell its unit. Secrets are never
// written in the file itself: a field ending in _file or _env names where they are found (see Secret). A field named file or
// ending in _file holds a path; a relative one is looked up from the directory of the configuration, wherever the program was
// started.
package config
