output "name" {
  description = "The region's name."
  value       = var.name
}

output "base_share" {
  description = "The region's base share, parts per million."
  value       = var.base_share
}

output "failure_domain" {
  description = "What the region fails together with."
  value       = var.failure_domain
}

output "namespace" {
  description = "Namespace of the release."
  value       = kubernetes_namespace_v1.this.metadata[0].name
}

output "gateway_address" {
  description = "Where clients inside the cluster reach the gateways."
  value       = "partidor-gateway.${kubernetes_namespace_v1.this.metadata[0].name}.svc"
}

output "nats_url" {
  description = "The region's own NATS, where it runs in the cluster; null otherwise."
  value       = var.nats.in_cluster ? "nats://partidor-nats.${kubernetes_namespace_v1.this.metadata[0].name}.svc:4222" : null
}

output "release" {
  description = "Chart and version that run."
  value       = { name = helm_release.this.name, chart = helm_release.this.chart, version = helm_release.this.version }
}

output "values" {
  description = "The chart values that were given, without secrets."
  value       = local.values
}
