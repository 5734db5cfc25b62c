output "gateways" {
  description = "Where clients inside each cluster reach the gateways."
  value       = { eu = module.eu.gateway_address, us = module.us.gateway_address }
}

output "base_split" {
  description = "The declared base split."
  value       = module.control_plane.base_split
}

output "admin_url" {
  description = "The admin API, for partidorctl."
  value       = module.control_plane.admin_url
}

output "release_values" {
  description = "What each release was given, without secrets."
  value       = { eu = module.eu.values, us = module.us.values, control_plane = module.control_plane.values }
}
