variable "kubeconfig" {
  description = "Path of the kubeconfig that knows the clusters."
  type        = string
  default     = "~/.kube/config"
}

variable "contexts" {
  description = "kubeconfig context of each region's cluster."
  type        = map(string)
  default     = { eu = "eu", us = "us", ap = "ap" }
}

variable "chart" {
  description = "The partidor chart."
  type        = string
  default     = "../../../deploy/helm/partidor"
}

variable "image" {
  description = "Where the images are, and which."
  type = object({
    repository = string
    tag        = string
  })
}

variable "nats_urls" {
  description = "NATS of each region, a leaf of the hub (see deploy/nats)."
  type        = map(string)
}

variable "nats_hub" {
  description = "NATS of the control plane."
  type        = string
}

variable "region_secrets" {
  description = "Secrets by region, from your secret store: -var-file, TF_VAR_region_secrets or an ephemeral resource."
  type = map(object({
    postgres_url   = string
    admin_token    = string
    redis_password = optional(string)
    nats_nkey      = optional(string)
    nats_ca        = optional(string)
  }))
  sensitive = true
  ephemeral = true
}

variable "control_plane_secrets" {
  description = "Secrets of the control plane."
  type = object({
    postgres_url  = string
    migration_url = string
    tokens        = map(string)
    nats_nkey     = optional(string)
    nats_ca       = optional(string)
  })
  sensitive = true
  ephemeral = true
}
