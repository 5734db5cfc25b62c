mock_provider "kubernetes" {}
mock_provider "helm" {}

variables {
  name           = "eu"
  base_share     = 700000
  chart          = "../../../deploy/helm/partidor"
  image          = { repository = "registry.example.com/platform", tag = "0.1.0" }
  gateway_config = { routes = [{ id = "create-order", methods = ["POST"], path = "/orders", upstream = "orders" }] }
  redis          = { in_cluster = true }
  nats           = { in_cluster = true }
  secrets        = { postgres_url = "postgres://x", admin_token = "x" }
}

run "good" {
  command = plan
}

run "name" {
  command = plan
  variables { name = "eu.west" }
  expect_failures = [var.name]
}

run "base_share" {
  command = plan
  variables { base_share = 0.7 }
  expect_failures = [var.base_share]
}

run "no_gateways" {
  command = plan
  variables { gateways = { min = 0, max = 3 } }
  expect_failures = [var.gateways]
}

run "budget_takes_all" {
  command = plan
  variables { gateways = { min = 2, max = 3, max_unavailable = 2 } }
  expect_failures = [var.gateways]
}

run "redis_nowhere" {
  command = plan
  variables { redis = {} }
  expect_failures = [var.redis]
}

run "redis_twice" {
  command = plan
  variables { redis = { in_cluster = true, addresses = ["redis:6379"] } }
  expect_failures = [var.redis]
}

run "nats_nowhere" {
  command = plan
  variables { nats = {} }
  expect_failures = [var.nats]
}

run "latest" {
  command = plan
  variables { image = { repository = "registry.example.com/platform", tag = "latest" } }
  expect_failures = [var.image]
}

run "no_routes" {
  command = plan
  variables { gateway_config = { routes = [] } }
  expect_failures = [var.gateway_config]
}

run "password_named_only_where_given" {
  command = plan
  variables {
    with_redis_password = true
    secrets             = { postgres_url = "postgres://x", admin_token = "x", redis_password = "x" }
  }
  assert {
    condition     = output.values.redis.passwordSecret.name == "partidor-redis" && length(output.secret_names) == 3
    error_message = "The password gets a Secret of its own."
  }
}

run "nats_key_and_authority" {
  command = plan
  variables {
    nats_secrets = ["nkey", "ca"]
    secrets      = { postgres_url = "postgres://x", admin_token = "x", nats_nkey = "x", nats_ca = "x" }
  }
  assert {
    condition     = output.values.nats.nkeySecret.name == "partidor-nats" && output.values.nats.caSecret.key == "ca.crt" && output.values.nats.credentialsSecret.name == ""
    error_message = "The key and the authority are named, credentials are not."
  }
}

run "two_ways_to_sign_in" {
  command = plan
  variables { nats_secrets = ["nkey", "credentials"] }
  expect_failures = [var.nats_secrets]
}
