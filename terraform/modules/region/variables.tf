variable "name" {
  description = "The region's name, the same in the control plane's regions, in NATS permissions and in every report."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{1,64}$", var.name))
    error_message = "name: must be 1 to 64 letters, digits, - or _."
  }
}

variable "failure_domain" {
  description = "What the region fails together with (a provider, a continent). A label here; the control plane declares it."
  type        = string
  default     = ""
}

variable "base_share" {
  description = "The region's base share of every limit in parts per million, as given to the control plane. Labels only; the ledger decides."
  type        = number

  validation {
    condition     = var.base_share >= 0 && var.base_share <= 1000000 && floor(var.base_share) == var.base_share
    error_message = "base_share: must be a whole number from 0 to 1000000."
  }
}

variable "namespace" {
  description = "Namespace of the release; made by this module."
  type        = string
  default     = "partidor"
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
  description = "Registry path under which partidor-gateway is found, and its tag."
  type = object({
    repository = string
    tag        = string
  })

  validation {
    condition     = var.image.repository != "" && var.image.tag != "" && var.image.tag != "latest"
    error_message = "image: repository and a fixed tag are needed."
  }
}

variable "gateways" {
  description = "How many gateways run (autoscaled from min to max), what each may use, and how many may be away at once on purpose."
  type = object({
    min             = number
    max             = number
    cpu             = optional(string, "500m")
    memory          = optional(string, "1Gi")
    max_unavailable = optional(number, 1)
  })
  default = { min = 3, max = 20 }

  validation {
    condition     = var.gateways.min >= 1
    error_message = "gateways.min: must be at least 1."
  }
  validation {
    condition     = var.gateways.max >= var.gateways.min
    error_message = "gateways.max: must be at least gateways.min."
  }
  validation {
    condition     = var.gateways.max_unavailable >= 1 && var.gateways.max_unavailable < max(2, var.gateways.min)
    error_message = "gateways.max_unavailable: must be at least 1 and less than gateways.min."
  }
}

variable "gateway_config" {
  description = "The gateway's own file as an object: upstreams, routes, identity and whatever else it should say. Ports, region, stores and secrets are filled in."
  type        = any

  validation {
    condition     = can(length(var.gateway_config.routes)) && try(length(var.gateway_config.routes), 0) > 0
    error_message = "gateway_config.routes: at least one route is needed."
  }
}

variable "redis" {
  description = "The regional Redis: in_cluster, or addresses of one that is run elsewhere (with master for Sentinel, cluster for Redis Cluster)."
  type = object({
    in_cluster = optional(bool, false)
    addresses  = optional(list(string), [])
    master     = optional(string, "")
    cluster    = optional(bool, false)
    username   = optional(string, "")
    tls        = optional(bool, false)
    storage    = optional(string, "4Gi")
    maxmemory  = optional(string, "512mb")
  })

  validation {
    condition     = var.redis.in_cluster != (length(var.redis.addresses) > 0)
    error_message = "redis.addresses: at least one is needed, or in_cluster = true, and not both."
  }
}

variable "nats" {
  description = "NATS of this region: in_cluster, or the URLs of one that is run elsewhere."
  type = object({
    in_cluster = optional(bool, false)
    urls       = optional(list(string), [])
    tls        = optional(bool, false)
  })

  validation {
    condition     = var.nats.in_cluster != (length(var.nats.urls) > 0)
    error_message = "nats.urls: at least one is needed, or in_cluster = true, and not both."
  }
  validation {
    condition     = alltrue([for u in var.nats.urls : can(regex("^(nats|tls|ws|wss)://.+", u))])
    error_message = "nats.urls: each must begin with nats://, tls://, ws:// or wss://."
  }
}

variable "secrets" {
  description = "Secret values. They are written through to Kubernetes by write-only arguments and never stored in the state; raise secrets_version to write them again."
  type = object({
    postgres_url     = string
    admin_token      = string
    redis_password   = optional(string)
    nats_credentials = optional(string)
    nats_nkey        = optional(string)
    nats_ca          = optional(string)
  })
  sensitive = true
  ephemeral = true

  validation {
    condition     = var.secrets.postgres_url != "" && var.secrets.admin_token != ""
    error_message = "secrets: postgres_url and admin_token must not be empty."
  }
}

variable "secrets_version" {
  description = "Raise it whenever a value in secrets has changed."
  type        = number
  default     = 1
}

variable "with_redis_password" {
  description = "Whether secrets.redis_password is given. Kept apart because secret values may not shape a plan."
  type        = bool
  default     = false
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

variable "telemetry_endpoint" {
  description = "OTLP endpoint, such as http://otel-collector:4317. Empty exports nothing."
  type        = string
  default     = ""

  validation {
    condition     = var.telemetry_endpoint == "" || can(regex("^https?://.+", var.telemetry_endpoint))
    error_message = "telemetry_endpoint: must begin with http:// or https://."
  }
}

variable "tls_secret" {
  description = "Name of a kubernetes.io/tls Secret in the namespace that makes the data port speak TLS. Empty for plain HTTP behind a balancer."
  type        = string
  default     = ""
}

variable "allow_from" {
  description = "Namespaces that may reach the data port, and the admin port. Empty lists let everybody, and nobody."
  type = object({
    data  = optional(list(string), [])
    admin = optional(list(string), [])
  })
  default = {}
}
