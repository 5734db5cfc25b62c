locals {
  labels = {
    "app.kubernetes.io/part-of"   = "partidor"
    "partidor.dev/region"         = var.name
    "partidor.dev/failure-domain" = var.failure_domain
  }

  # Values of the chart. Secrets are only named.
  values = {
    image  = { repository = var.image.repository, tag = var.image.tag }
    region = { enabled = true, name = var.name }
    gateway = {
      replicas         = var.gateways.min
      autoscaling      = { enabled = var.gateways.max > var.gateways.min, minReplicas = var.gateways.min, maxReplicas = var.gateways.max }
      disruption       = { maxUnavailable = var.gateways.max_unavailable }
      resources        = { requests = { cpu = var.gateways.cpu, memory = var.gateways.memory }, limits = { memory = var.gateways.memory } }
      config           = var.gateway_config
      adminTokenSecret = { name = kubernetes_secret_v1.this["admin"].metadata[0].name, key = "token" }
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
      credentialsSecret = { name = var.with_nats_credentials ? "partidor-nats" : "", key = "nats.creds" }
    }
    postgres      = { urlSecret = { name = "partidor-ledger", key = "url" } }
    telemetry     = { endpoint = var.telemetry_endpoint }
    networkPolicy = { enabled = true, dataFrom = var.allow_from.data, adminFrom = var.allow_from.admin }
  }

  # Which Secrets exist is known without knowing what is in them.
  secrets = merge(
    {
      admin  = { name = "partidor-admin", key = "token" }
      ledger = { name = "partidor-ledger", key = "url" }
    },
    var.with_redis_password ? { redis = { name = "partidor-redis", key = "password" } } : {},
    var.with_nats_credentials ? { nats = { name = "partidor-nats", key = "nats.creds" } } : {},
  )
}

resource "kubernetes_namespace_v1" "this" {
  metadata {
    name   = var.namespace
    labels = local.labels
  }
}

resource "kubernetes_secret_v1" "this" {
  for_each = local.secrets

  metadata {
    name      = each.value.name
    namespace = kubernetes_namespace_v1.this.metadata[0].name
    labels    = local.labels
  }

  data_wo = {
    (each.value.key) = {
      admin  = var.secrets.admin_token
      ledger = var.secrets.postgres_url
      redis  = var.secrets.redis_password
      nats   = var.secrets.nats_credentials
    }[each.key]
  }
  data_wo_revision = var.secrets_version
}

resource "helm_release" "this" {
  name      = "partidor"
  namespace = kubernetes_namespace_v1.this.metadata[0].name
  chart     = var.chart
  version   = var.chart_version
  values    = [yamlencode(local.values)]

  # A release that does not become ready is taken back.
  atomic          = true
  cleanup_on_fail = true
  timeout         = 600

  depends_on = [kubernetes_secret_v1.this]
}
