# Two regions, 70/30, and the control plane beside the first. One state; see README.md for one state per region.

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

locals {
  regions = {
    eu = { base_share = 700000, failure_domain = "aws" }
    us = { base_share = 300000, failure_domain = "gcp" }
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
