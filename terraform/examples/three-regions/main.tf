# The step from ../two-regions to three: a provider pair, a module and a line in local.regions for ap, and new base shares.
# Nothing else changes; eu and us are not restarted. Keys that have moved keep their shares until the traffic asks.

provider "kubernetes" {
  alias          = "eu"
  config_path    = var.kubeconfig
  config_context = var.contexts["eu"]
}

provider "helm" {
  alias      = "eu"
  kubernetes = { config_path = var.kubeconfig, config_context = var.contexts["eu"] }
}

provider "kubernetes" {
  alias          = "us"
  config_path    = var.kubeconfig
  config_context = var.contexts["us"]
}

provider "helm" {
  alias      = "us"
  kubernetes = { config_path = var.kubeconfig, config_context = var.contexts["us"] }
}

provider "kubernetes" {
  alias          = "ap"
  config_path    = var.kubeconfig
  config_context = var.contexts["ap"]
}

provider "helm" {
  alias      = "ap"
  kubernetes = { config_path = var.kubeconfig, config_context = var.contexts["ap"] }
}

locals {
  regions = {
    eu = { base_share = 500000, failure_domain = "aws" }
    us = { base_share = 300000, failure_domain = "gcp" }
    ap = { base_share = 200000, failure_domain = "azure", floor = 50000 }
  }

  gateway_config = {
    upstreams = { orders = { targets = [{ url = "http://orders.shop.svc:80" }] } }
    routes    = [{ id = "create-order", methods = ["POST"], path = "/orders", upstream = "orders" }]
  }
}

module "control_plane" {
  source = "../../modules/control-plane"

  regions        = local.regions
  chart          = var.chart
  image          = var.image
  nats_urls      = [var.nats_hub]
  nats_secrets   = ["nkey", "ca"]
  tokens         = { sre = "operator", board = "viewer" }
  secrets        = var.control_plane_secrets
  control_domain = "aws"

  providers = { kubernetes = kubernetes.eu, helm = helm.eu }
}

module "eu" {
  source = "../../modules/region"

  name                = "eu"
  base_share          = local.regions["eu"].base_share
  failure_domain      = local.regions["eu"].failure_domain
  chart               = var.chart
  image               = var.image
  gateway_config      = local.gateway_config
  redis               = { in_cluster = true }
  with_redis_password = true
  nats                = { urls = [var.nats_urls["eu"]] }
  nats_secrets        = ["nkey", "ca"]
  secrets             = var.region_secrets["eu"]

  providers = { kubernetes = kubernetes.eu, helm = helm.eu }
}

module "us" {
  source = "../../modules/region"

  name                = "us"
  base_share          = local.regions["us"].base_share
  failure_domain      = local.regions["us"].failure_domain
  chart               = var.chart
  image               = var.image
  gateway_config      = local.gateway_config
  redis               = { in_cluster = true }
  with_redis_password = true
  nats                = { urls = [var.nats_urls["us"]] }
  nats_secrets        = ["nkey", "ca"]
  secrets             = var.region_secrets["us"]

  providers = { kubernetes = kubernetes.us, helm = helm.us }
}

module "ap" {
  source = "../../modules/region"

  name                = "ap"
  base_share          = local.regions["ap"].base_share
  failure_domain      = local.regions["ap"].failure_domain
  chart               = var.chart
  image               = var.image
  gateway_config      = local.gateway_config
  redis               = { in_cluster = true }
  with_redis_password = true
  nats                = { urls = [var.nats_urls["ap"]] }
  nats_secrets        = ["nkey", "ca"]
  secrets             = var.region_secrets["ap"]

  providers = { kubernetes = kubernetes.ap, helm = helm.ap }
}
