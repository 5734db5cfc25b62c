# What a region and the control plane have in common: a namespace, Secrets that no state holds, and a release of the chart.

resource "kubernetes_namespace_v1" "this" {
  metadata {
    name   = var.namespace
    labels = var.labels
  }
}

resource "kubernetes_secret_v1" "this" {
  for_each = var.secret_names

  metadata {
    name      = each.value
    namespace = kubernetes_namespace_v1.this.metadata[0].name
    labels    = var.labels
  }

  data_wo          = { for key, value in var.secrets[each.value] : key => value if value != null }
  data_wo_revision = var.secrets_version
}

resource "helm_release" "this" {
  name      = "partidor"
  namespace = kubernetes_namespace_v1.this.metadata[0].name
  chart     = var.chart
  version   = var.chart_version
  values    = [yamlencode(var.values)]

  # A release that does not become ready is taken back.
  atomic          = true
  cleanup_on_fail = true
  timeout         = 600

  depends_on = [kubernetes_secret_v1.this]
}
