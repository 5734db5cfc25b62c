mock_provider "kubernetes" {}
mock_provider "helm" {}

variables {
  regions   = { eu = { base_share = 700000 }, us = { base_share = 300000 } }
  chart     = "../../../deploy/helm/partidor"
  image     = { repository = "registry.example.com/platform", tag = "0.1.0" }
  nats_urls = ["nats://nats:4222"]
  tokens    = { sre = "operator" }
  secrets   = { postgres_url = "postgres://x", migration_url = "postgres://y", tokens = { sre = "x" } }
}

run "good" {
  command = plan
}

run "shares_do_not_add_up" {
  command = plan
  variables { regions = { eu = { base_share = 700000 }, us = { base_share = 299999 } } }
  expect_failures = [var.regions]
}

run "negative_share" {
  command = plan
  variables { regions = { eu = { base_share = 1000001 }, us = { base_share = -1 } } }
  expect_failures = [var.regions]
}

run "nobody_may_change" {
  command = plan
  variables { tokens = { board = "viewer" } }
  expect_failures = [var.tokens]
}

run "unknown_role" {
  command = plan
  variables { tokens = { sre = "admin" } }
  expect_failures = [var.tokens]
}

run "no_nats" {
  command = plan
  variables { nats_urls = [] }
  expect_failures = [var.nats_urls]
}

run "no_replicas" {
  command = plan
  variables { replicas = 0 }
  expect_failures = [var.replicas]
}
