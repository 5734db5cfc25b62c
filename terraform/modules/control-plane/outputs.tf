output "base_split" {
  description = "The declared base split, parts per million by region."
  value       = { for name, r in var.regions : name => r.base_share }
}

output "admin_url" {
  description = "The admin API inside the cluster, for partidorctl."
  value       = "http://partidor-rebalancer.${module.release.namespace}.svc:9180"
}

output "console_url" {
  description = "The console, where an ingress was asked for; null otherwise."
  value       = var.console == null ? null : "${var.console.tls_secret == "" ? "http" : "https"}://${var.console.host}/"
}

output "namespace" {
  description = "Namespace of the release."
  value       = module.release.namespace
}

output "values" {
  description = "The chart values that were given, without secrets."
  value       = local.values
}
