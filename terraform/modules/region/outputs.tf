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
  value       = module.release.namespace
}

output "gateway_address" {
  description = "Where clients inside the cluster reach the gateways."
  value       = "partidor-gateway.${module.release.namespace}.svc"
}

output "nats_url" {
  description = "The region's own NATS, where it runs in the cluster; null otherwise."
  value       = var.nats.in_cluster ? "nats://partidor-nats.${module.release.namespace}.svc:4222" : null
}

output "release" {
  description = "Chart and version that run."
  value       = module.release.release
}

output "values" {
  description = "The chart values that were given, without secrets."
  value       = local.values
}

output "secret_names" {
  description = "Secrets that were made in the namespace."
  value       = module.release.secret_names
}
