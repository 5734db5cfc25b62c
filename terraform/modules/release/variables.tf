variable "namespace" {
  description = "Namespace to make."
  type        = string
}

variable "labels" {
  description = "Labels of the namespace and the Secrets."
  type        = map(string)
}

variable "secret_names" {
  description = "Names of the Secrets to make. Which there are is known without knowing what is in them."
  type        = set(string)
}

variable "secrets" {
  description = "What is in each Secret, by its name: keys and values. Null values are left out. Written through and never stored."
  type        = map(map(string))
  sensitive   = true
  ephemeral   = true
}

variable "secrets_version" {
  description = "Raise it whenever a value in secrets has changed."
  type        = number
}

variable "chart" {
  description = "Where the partidor chart is found: a path, or an OCI reference without its version."
  type        = string
}

variable "chart_version" {
  description = "Version of the chart; null for a path."
  type        = string
}

variable "values" {
  description = "Values of the chart. Secrets are only named in them."
  type        = any
}
