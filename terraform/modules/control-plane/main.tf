locals {
  labels = { "app.kubernetes.io/part-of" = "partidor", "partidor.dev/control-plane" = "true" }

  values = {
    image  = { repository = var.image.repository, tag = var.image.tag }
    region = { enabled = false }
    redis  = { mode = "external" }
    nats = {
      mode              = "external"
      urls              = var.nats_urls
      credentialsSecret = { name = contains(var.nats_secrets, "credentials") ? "partidor-nats" : "", key = "nats.creds" }
      nkeySecret        = { name = contains(var.nats_secrets, "nkey") ? "partidor-nats" : "", key = "nats.nk" }
      caSecret          = { name = contains(var.nats_secrets, "ca") ? "partidor-nats" : "", key = "ca.crt" }
    }
    postgres = { urlSecret = { name = "partidor-ledger", key = "url" } }
    controlPlane = {
      enabled  = true
      replicas = var.replicas
      regions = [for name in sort(keys(var.regions)) : {
        name          = name
        baseShare     = var.regions[name].base_share
        floor         = var.regions[name].floor
        failureDomain = var.regions[name].failure_domain
      }]
      tokens = [for name in sort(keys(var.tokens)) : { name = name, role = var.tokens[name], secret = { name = "partidor-tokens", key = name } }]
      config = merge(var.rebalancer_config, { parameters = merge(
        try(var.rebalancer_config.parameters, {}),
        { for name, domain in { control_domain = var.control_domain, witness_domain = var.witness_domain } : name => domain if domain != "" },
      ) })
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
}

module "release" {
  source = "../release"

  namespace     = var.namespace
  labels        = local.labels
  chart         = var.chart
  chart_version = var.chart_version
  values        = local.values

  secret_names = toset(concat(
    ["partidor-ledger", "partidor-ledger-owner", "partidor-tokens"],
    length(var.nats_secrets) > 0 ? ["partidor-nats"] : [],
  ))
  secrets = {
    partidor-ledger       = { url = var.secrets.postgres_url }
    partidor-ledger-owner = { url = var.secrets.migration_url }
    partidor-tokens       = var.secrets.tokens
    partidor-nats         = { "nats.creds" = var.secrets.nats_credentials, "nats.nk" = var.secrets.nats_nkey, "ca.crt" = var.secrets.nats_ca }
  }
  secrets_version = var.secrets_version
}
