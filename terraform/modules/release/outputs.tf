output "namespace" {
  description = "Namespace of the release."
  value       = kubernetes_namespace_v1.this.metadata[0].name
}

output "release" {
  description = "Chart and version that run."
  value       = { name = helm_release.this.name, chart = helm_release.this.chart, version = helm_release.this.version }
}

output "secret_names" {
  description = "Secrets that were made."
  value       = keys(kubernetes_secret_v1.this)
}
