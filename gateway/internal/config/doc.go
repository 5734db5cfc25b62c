// Package config is the gateway's configuration: one strict YAML file, its useful zero values and every reason to refuse
// it. Nothing starts before the whole file is valid, and each fault names its field.
//
// Secrets never stand in the file: a field that ends in _file or _env says where one is found.
package config
