// Package check renders the chart with Helm's own engine and judges what comes out with Kubernetes's own types. It is a module of its
// own, outside the workspace, because Helm and Kubernetes bring 300 packages that nothing of the product needs: `make chart-test`.
package check
