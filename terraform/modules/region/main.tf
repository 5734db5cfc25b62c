locals {
  labels = {
    "app.kubernetes.io/part-of"   = "partidor"
    "partidor.dev/region"         = var.name
    "partidor.dev/failure-domain" = var.failure_domain
  }

  # Values of the chart. Secrets are only named.
  values = {
    image  = { repository = var.image.repository, tag = var.image.tag }
    region = { enabled = true, name = var.name, failureDomain = var.failure_domain }
    gateway = {
      replicas         = var.gateways.min
      autoscaling      = { enabled = var.gateways.max > var.gateways.min, minReplicas = var.gateways.min, maxReplicas = var.gateways.max }
      disruption       = { maxUnavailable = var.gateways.max_unavailable }
      resources        = { requests = { cpu = var.gateways.cpu, memory = var.gateways.memory }, limits = { memory = var.gateways.memory } }
      config           = var.gateway_config
      adminTokenSecret = { name = "partidor-admin", key = "token" }
      tlsSecret        = var.tls_secret
      podAnnotations   = { "partidor.dev/secrets-version" = tostring(var.secrets_version) }
    }
    redis = {
      mode           = var.redis.in_cluster ? "in-cluster" : "external"
      addresses      = var.redis.addresses
      master         = var.redis.master
      cluster        = var.redis.cluster
      username       = var.redis.username
      tls            = var.redis.tls
      passwordSecret = { name = var.with_redis_password ? "partidor-redis" : "", key = "password" }
      inCluster      = { storage = var.redis.storage, maxmemory = var.redis.maxmemory }
    }
    nats = {
      mode              = var.nats.in_cluster ? "in-cluster" : "external"
      urls              = var.nats.urls
      tls               = var.nats.tls
      credentialsSecret = { name = contains(var.nats_secrets, "credentials") ? "partidor-nats" : "", key = "nats.creds" }
      nkeySecret        = { name = contains(var.nats_secrets, "nkey") ? "partidor-nats" : "", key = "nats.nk" }
      caSecret          = { name = contains(var.nats_secrets, "ca") ? "partidor-nats" : "", key = "ca.crt" }
    }
    postgres      = { urlSecret = { name = "partidor-ledger", key = "url" } }
    telemetry     = { endpoint = var.telemetry_endpoint }
    networkPolicy = { enabled = true, dataFrom = var.allow_from.data, adminFrom = var.allow_from.admin }
  }
}

module "release" {
  source = "../release"

  namespace     = var.namespace
  labels        = local.labels
  chart         = var.chart
  chart_version = var.chart_version
  values        = local.values

  secret_names = toset(concat(
    ["partidor-admin", "partidor-ledger"],
    var.with_redis_password ? ["partidor-redis"] : [],
    length(var.nats_secrets) > 0 ? ["partidor-nats"] : [],
  ))
  secrets = {
    partidor-admin  = { token = var.secrets.admin_token }
    partidor-ledger = { url = var.secrets.postgres_url }
    partidor-redis  = { password = var.secrets.redis_password }
    partidor-nats   = { "nats.creds" = var.secrets.nats_credentials, "nats.nk" = var.secrets.nats_nkey, "ca.crt" = var.secrets.nats_ca }
  }
  secrets_version = var.secrets_version
}
