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

run "floor_above_the_share" {
  command = plan
  variables { regions = { eu = { base_share = 700000 }, us = { base_share = 300000, floor = 300001 } } }
  expect_failures = [var.regions]
}

run "no_regions" {
  command = plan
  variables { regions = {} }
  expect_failures = [var.regions]
}

run "floors_domains_and_voters_reach_the_chart" {
  command = plan
  variables {
    regions           = { eu = { base_share = 700000, floor = 100000, failure_domain = "rack-1" }, us = { base_share = 300000 } }
    control_domain    = "rack-2"
    witness_domain    = "rack-3"
    rebalancer_config = { parameters = { cycle = "1m" } }
  }
  assert {
    condition     = output.values.controlPlane.regions[0].floor == 100000 && output.values.controlPlane.regions[0].failureDomain == "rack-1"
    error_message = "Floor and failure domain are declared."
  }
  assert {
    condition     = output.values.controlPlane.config.parameters == { cycle = "1m", control_domain = "rack-2", witness_domain = "rack-3" }
    error_message = "The control plane's and the witness's domains are parameters, beside others."
  }
}
