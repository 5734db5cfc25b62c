// Package route turns a request's host, method and path into one route of the configuration.
//
// A path is first brought into one normal form, then matched, and the normal form is what goes upstream, so that no
// spelling of a path reaches an upstream past the limit that stands on it. Spellings that servers are known to read
// differently (an encoded slash, a backslash, encoded dots, control bytes, path parameters, bytes that are not UTF-8) are
// refused unless the route allows them. Patterns have net/http.ServeMux's syntax and precedence; a table in which two
// routes contradict each other, or one could never be reached, is refused when it is compiled.
package route
