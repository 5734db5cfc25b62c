variables {
  nats_hub  = "tls://nats.example.com:4222"
  image     = { repository = "registry.example.com/platform", tag = "0.1.0" }
  nats_urls = { eu = "tls://nats.eu.example.com:4222", us = "tls://nats.us.example.com:4222" }
  region_secrets = {
    eu = { postgres_url = "postgres://secret-eu", admin_token = "secret-admin-eu", nats_nkey = "secret-nkey-eu", nats_ca = "secret-ca", redis_password = "secret-redis-eu" }
    us = { postgres_url = "postgres://secret-us", admin_token = "secret-admin-us", nats_nkey = "secret-nkey-us", nats_ca = "secret-ca", redis_password = "secret-redis-us" }
  }
  control_plane_secrets = {
    postgres_url  = "postgres://secret-cp"
    migration_url = "postgres://secret-owner"
    tokens        = { sre = "secret-sre", board = "secret-board" }
    nats_nkey     = "secret-nkey-cp"
    nats_ca       = "secret-ca"
  }
}

run "shares_add_up" {
  command = plan

  assert {
    condition     = sum(values(output.base_split)) == 1000000
    error_message = "The base split must add up to 1000000."
  }
  assert {
    condition     = output.release_values.control_plane.controlPlane.regions[0].baseShare == 700000
    error_message = "The control plane is told the same split."
  }
  assert {
    condition     = module.eu.base_share == output.base_split["eu"] && module.us.base_share == output.base_split["us"]
    error_message = "Regions and control plane agree on the base shares."
  }
}

run "no_secret_in_plain_values" {
  command = plan

  assert {
    condition     = !strcontains(jsonencode(output.release_values), "secret-")
    error_message = "Chart values name Secrets, and never hold one."
  }
}

run "replicas_and_budgets_agree" {
  command = plan

  assert {
    condition = alltrue([
      for v in [output.release_values.eu, output.release_values.us] :
      v.gateway.disruption.maxUnavailable < v.gateway.autoscaling.minReplicas && v.gateway.autoscaling.minReplicas <= v.gateway.autoscaling.maxReplicas
    ])
    error_message = "A disruption budget leaves at least one gateway."
  }
}

run "regions_stand_alone" {
  command = plan

  assert {
    condition     = output.release_values.eu.nats.urls != output.release_values.us.nats.urls
    error_message = "Each region speaks to its own NATS."
  }
  assert {
    condition     = output.release_values.eu.region.name == "eu" && output.release_values.us.region.name == "us"
    error_message = "Each release knows its region."
  }
}
