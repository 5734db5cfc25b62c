variables {
  nats_hub  = "tls://nats.example.com:4222"
  image     = { repository = "registry.example.com/platform", tag = "0.1.0" }
  nats_urls = { eu = "tls://nats.eu.example.com:4222", us = "tls://nats.us.example.com:4222", ap = "tls://nats.ap.example.com:4222" }
  region_secrets = {
    eu = { postgres_url = "postgres://secret-eu", admin_token = "secret-admin-eu", nats_nkey = "secret-nkey-eu", nats_ca = "secret-ca", redis_password = "secret-redis-eu" }
    us = { postgres_url = "postgres://secret-us", admin_token = "secret-admin-us", nats_nkey = "secret-nkey-us", nats_ca = "secret-ca", redis_password = "secret-redis-us" }
    ap = { postgres_url = "postgres://secret-ap", admin_token = "secret-admin-ap", nats_nkey = "secret-nkey-ap", nats_ca = "secret-ca", redis_password = "secret-redis-ap" }
  }
  control_plane_secrets = {
    postgres_url  = "postgres://secret-cp"
    migration_url = "postgres://secret-owner"
    tokens        = { sre = "secret-sre", board = "secret-board" }
    nats_nkey     = "secret-nkey-cp"
    nats_ca       = "secret-ca"
  }
}

# What two regions were given, from the example before this one.
run "before" {
  command = plan

  module {
    source = "../two-regions"
  }
}

run "adding_a_region_leaves_the_others_alone" {
  command = plan

  assert {
    condition     = jsonencode(output.release_values.eu) == jsonencode(run.before.release_values.eu)
    error_message = "eu's release must not change when ap is added."
  }
  assert {
    condition     = jsonencode(output.release_values.us) == jsonencode(run.before.release_values.us)
    error_message = "us's release must not change when ap is added."
  }
  assert {
    condition     = sum(values(output.base_split)) == 1000000 && length(output.base_split) == 3
    error_message = "Three regions share the whole."
  }
}
