// Package check runs deploy/otel/collector.yaml in a real collector, made of the components that the configuration names. It is a module
// of its own, outside the workspace, because they bring some hundred packages that nothing of the product needs: `make otel-check`.
package check
