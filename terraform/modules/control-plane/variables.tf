variable "regions" {
  description = "All regions. Base shares in parts per million add up to exactly 1000000. A floor, also in parts per million, is the part of the whole that the region never gives away (0: the parameter floor). The failure domain says what is lost together."
  type = map(object({
    base_share     = number
    floor          = optional(number, 0)
    failure_domain = optional(string, "")
  }))

  validation {
    condition     = sum(concat([0], [for r in values(var.regions) : r.base_share])) == 1000000
    error_message = "regions: shares add up to ${sum(concat([0], [for r in values(var.regions) : r.base_share])) / 10000}%, must be exactly 100%."
  }
  validation {
    condition     = alltrue([for name in keys(var.regions) : can(regex("^[A-Za-z0-9_-]{1,64}$", name))])
    error_message = "regions: a name must be 1 to 64 letters, digits, - or _."
  }
  validation {
    condition     = alltrue([for r in values(var.regions) : r.base_share >= 0 && r.base_share <= 1000000 && floor(r.base_share) == r.base_share])
    error_message = "regions: base_share must be a whole number from 0 to 1000000."
  }
  validation {
    condition     = alltrue([for r in values(var.regions) : r.floor >= 0 && r.floor <= r.base_share && floor(r.floor) == r.floor])
    error_message = join(" ", [for name, r in var.regions : "regions.${name}: floor: ${r.floor / 10000}% is above the base share ${r.base_share / 10000}%." if r.floor > r.base_share || r.floor < 0 || floor(r.floor) != r.floor])
  }
  validation {
    condition     = alltrue([for r in values(var.regions) : can(regex("^[A-Za-z0-9_.-]{0,64}$", r.failure_domain))])
    error_message = "regions: a failure_domain must be up to 64 letters, digits, -, _ or a dot."
  }
}

variable "control_domain" {
  description = "Failure domain of the control plane, for its vote on leases; empty for none. Leases run where voters sit in at least three domains."
  type        = string
  default     = ""
}

variable "witness_domain" {
  description = "Failure domain of the witness, where there is one; empty for none."
  type        = string
  default     = ""
}

variable "namespace" {
  description = "Namespace of the release; made by this module."
  type        = string
  default     = "partidor-control"
}

variable "chart" {
  description = "Where the partidor chart is found: a path, or an OCI reference without its version."
  type        = string
}

variable "chart_version" {
  description = "Version of the chart; null for a path."
  type        = string
  default     = null
}

variable "image" {
  description = "Registry path under which partidor-rebalancer is found, and its tag."
  type = object({
    repository = string
    tag        = string
  })

  validation {
    condition     = var.image.repository != "" && var.image.tag != "" && var.image.tag != "latest"
    error_message = "image: repository and a fixed tag are needed."
  }
}

variable "replicas" {
  description = "Rebalancers; one acts, the others stand by."
  type        = number
  default     = 2

  validation {
    condition     = var.replicas >= 1
    error_message = "replicas: must be at least 1."
  }
}

variable "nats_urls" {
  description = "NATS that reaches every region."
  type        = list(string)

  validation {
    condition     = length(var.nats_urls) > 0 && alltrue([for u in var.nats_urls : can(regex("^(nats|tls|ws|wss)://.+", u))])
    error_message = "nats_urls: at least one is needed, and each must begin with nats://, tls://, ws:// or wss://."
  }
}

variable "nats_secrets" {
  description = "Which of secrets.nats_credentials, nats_nkey and nats_ca are given: credentials, nkey, ca. Kept apart because secret values may not shape a plan."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for s in var.nats_secrets : contains(["credentials", "nkey", "ca"], s)]) && !(contains(var.nats_secrets, "credentials") && contains(var.nats_secrets, "nkey"))
    error_message = "nats_secrets: must be of credentials, nkey and ca, and not both credentials and nkey."
  }
}

variable "tokens" {
  description = "Names and roles (viewer or operator) of the admin API's tokens; their values are in secrets.tokens under the same names."
  type        = map(string)

  validation {
    condition     = alltrue([for role in values(var.tokens) : contains(["viewer", "operator"], role)])
    error_message = "tokens: a role must be viewer or operator."
  }
  validation {
    condition     = contains(values(var.tokens), "operator")
    error_message = "tokens: one with role operator is needed to declare the regions."
  }
  validation {
    condition     = alltrue([for name in keys(var.tokens) : can(regex("^[a-z0-9-]{1,40}$", name))])
    error_message = "tokens: a name must be 1 to 40 small letters, digits or -."
  }
}

variable "secrets" {
  description = "Secret values, written through by write-only arguments and never stored in the state. migration_url is the schema owner's; url the rebalancer's own role."
  type = object({
    postgres_url     = string
    migration_url    = string
    tokens           = map(string)
    nats_credentials = optional(string)
    nats_nkey        = optional(string)
    nats_ca          = optional(string)
  })
  sensitive = true
  ephemeral = true
}

variable "secrets_version" {
  description = "Raise it whenever a value in secrets has changed."
  type        = number
  default     = 1
}

variable "rebalancer_config" {
  description = "More of the rebalancer's own file, such as parameters."
  type        = any
  default     = {}
}

variable "console" {
  description = "Ingress of the console and the admin API; null for none."
  type = object({
    host       = string
    class_name = optional(string, "")
    tls_secret = optional(string, "")
  })
  default = null
}

variable "telemetry_endpoint" {
  description = "OTLP endpoint, such as http://otel-collector:4317. Empty exports nothing."
  type        = string
  default     = ""

  validation {
    condition     = var.telemetry_endpoint == "" || can(regex("^https?://.+", var.telemetry_endpoint))
    error_message = "telemetry_endpoint: must begin with http:// or https://."
  }
}

variable "allow_from" {
  description = "Namespaces that may reach the admin API. Empty lets everybody who has a token."
  type        = list(string)
  default     = []
}
