locals {
  labels = { "app.kubernetes.io/part-of" = "partidor", "partidor.dev/control-plane" = "true" }

  values = {
    image  = { repository = var.image.repository, tag = var.image.tag }
    region = { enabled = false }
    redis  = { mode = "external" }
    nats = {
      mode              = "external"
      urls              = var.nats_urls
      credentialsSecret = { name = var.with_nats_credentials ? "partidor-nats" : "", key = "nats.creds" }
    }
    postgres = { urlSecret = { name = "partidor-ledger", key = "url" } }
    controlPlane = {
      enabled            = true
      replicas           = var.replicas
      regions            = [for name in sort(keys(var.regions)) : { name = name, baseShare = var.regions[name].base_share }]
      tokens             = [for name in sort(keys(var.tokens)) : { name = name, role = var.tokens[name], secret = { name = "partidor-tokens", key = name } }]
      config             = var.rebalancer_config
      migrationURLSecret = { name = "partidor-ledger-owner", key = "url" }
      console = { ingress = {
        enabled   = var.console != null
        host      = try(var.console.host, "")
        className = try(var.console.class_name, "")
        tlsSecret = try(var.console.tls_secret, "")
      } }
    }
    telemetry     = { endpoint = var.telemetry_endpoint }
    networkPolicy = { enabled = true, adminFrom = var.allow_from }
  }

  secrets = merge(
    {
      ledger = "partidor-ledger"
      owner  = "partidor-ledger-owner"
      tokens = "partidor-tokens"
    },
    var.with_nats_credentials ? { nats = "partidor-nats" } : {},
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
    name      = each.value
    namespace = kubernetes_namespace_v1.this.metadata[0].name
    labels    = local.labels
  }

  data_wo = {
    ledger = { url = var.secrets.postgres_url }
    owner  = { url = var.secrets.migration_url }
    tokens = var.secrets.tokens
    nats   = { "nats.creds" = var.secrets.nats_credentials }
  }[each.key]
  data_wo_revision = var.secrets_version
}

resource "helm_release" "this" {
  name      = "partidor"
  namespace = kubernetes_namespace_v1.this.metadata[0].name
  chart     = var.chart
  version   = var.chart_version
  values    = [yamlencode(local.values)]

  atomic          = true
  cleanup_on_fail = true
  timeout         = 600

  depends_on = [kubernetes_secret_v1.this]
}
