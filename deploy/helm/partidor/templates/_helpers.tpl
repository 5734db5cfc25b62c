{{- define "partidor.fullname" -}}
{{- $suffix := "" -}}
{{- if .Values.region.enabled }}{{ $suffix = printf "-%s" .Values.region.name }}{{ end -}}
{{- if contains "partidor" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-partidor" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "partidor.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
app.kubernetes.io/name: partidor
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- if .Values.region.enabled }}
partidor.dev/region: {{ .Values.region.name | quote }}
{{- with .Values.region.failureDomain }}
partidor.dev/failure-domain: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* partidor.selector takes a dict of root and component. */}}
{{- define "partidor.selector" -}}
app.kubernetes.io/name: partidor
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component | quote }}
{{- end }}

{{- define "partidor.image" -}}
{{- $repository := required "image.repository: where the images are, such as registry.example.com/platform" .root.Values.image.repository -}}
{{ printf "%s/partidor-%s:%s" $repository .name (.root.Values.image.tag | default .root.Chart.AppVersion) | quote }}
{{- end }}

{{/* Every container: no root, nothing written but to volumes, no capabilities. */}}
{{- define "partidor.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "partidor.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "partidor.redisAddresses" -}}
{{- if eq .Values.redis.mode "in-cluster" -}}
{{- list (printf "%s-redis:6379" (include "partidor.fullname" .)) | toJson -}}
{{- else -}}
{{- if not .Values.redis.addresses }}{{ fail "redis.addresses: at least one is needed with redis.mode external" }}{{ end -}}
{{- .Values.redis.addresses | toJson -}}
{{- end -}}
{{- end }}

{{- define "partidor.natsURLs" -}}
{{- if eq .Values.nats.mode "in-cluster" -}}
{{- $scheme := ternary "nats" "tls" (eq .Values.nats.inCluster.serverSecret.name "") -}}
{{- list (printf "%s://%s-nats:4222" $scheme (include "partidor.fullname" .)) | toJson -}}
{{- else if eq .Values.nats.mode "external" -}}
{{- if not .Values.nats.urls }}{{ fail "nats.urls: at least one is needed with nats.mode external" }}{{ end -}}
{{- .Values.nats.urls | toJson -}}
{{- else -}}
[]
{{- end -}}
{{- end }}

{{- define "partidor.otel" -}}
{{- with .Values.telemetry }}
{{- if .endpoint }}
- {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ .endpoint | quote }}}
- {name: OTEL_EXPORTER_OTLP_PROTOCOL, value: {{ .protocol | quote }}}
- {name: OTEL_TRACES_EXPORTER, value: otlp}
- {name: OTEL_METRICS_EXPORTER, value: otlp}
- {name: OTEL_TRACES_SAMPLER, value: parentbased_traceidratio}
- {name: OTEL_TRACES_SAMPLER_ARG, value: {{ .sampleRatio | quote }}}
{{- end }}
{{- end }}
{{- end }}

{{/* partidor.secretVolume mounts one key of a Secret under a fixed file name. Takes name, secret, path. */}}
{{- define "partidor.secretVolume" -}}
{{- if .secret.name -}}
- name: {{ .name }}
  secret:
    secretName: {{ .secret.name | quote }}
    items: [{key: {{ .secret.key | quote }}, path: {{ .path }}}]
{{- end -}}
{{- end }}

{{/* partidor.natsClient is how a program of ours connects to NATS, as a section of its configuration. */}}
{{- define "partidor.natsClient" -}}
{{- $nats := dict "urls" (include "partidor.natsURLs" . | fromJsonArray) }}
{{- with .Values.nats }}
{{- if and .credentialsSecret.name .nkeySecret.name }}{{ fail "nats.nkeySecret: give it or credentialsSecret, not both" }}{{ end }}
{{- if .credentialsSecret.name }}{{ $_ := set $nats "credentials_file" "/run/secrets/nats/nats.creds" }}{{ end }}
{{- if .nkeySecret.name }}{{ $_ := set $nats "nkey_file" "/run/secrets/nats/nats.nk" }}{{ end }}
{{- if .caSecret.name }}{{ $_ := set $nats "tls" (dict "ca_file" "/run/secrets/nats-ca/ca.crt") }}{{ end }}
{{- end }}
{{- $nats | toJson }}
{{- end }}

{{/* partidor.natsMounts and partidor.natsVolumes bring its secrets. */}}
{{- define "partidor.natsMounts" -}}
{{- if or .Values.nats.credentialsSecret.name .Values.nats.nkeySecret.name }}
- {name: nats-credentials, mountPath: /run/secrets/nats, readOnly: true}
{{- end }}
{{- if .Values.nats.caSecret.name }}
- {name: nats-ca, mountPath: /run/secrets/nats-ca, readOnly: true}
{{- end }}
{{- end }}
{{- define "partidor.natsVolumes" -}}
{{- with include "partidor.secretVolume" (dict "name" "nats-credentials" "secret" .Values.nats.credentialsSecret "path" "nats.creds") }}
{{ . }}
{{- end }}
{{- with include "partidor.secretVolume" (dict "name" "nats-credentials" "secret" .Values.nats.nkeySecret "path" "nats.nk") }}
{{ . }}
{{- end }}
{{- with include "partidor.secretVolume" (dict "name" "nats-ca" "secret" .Values.nats.caSecret "path" "ca.crt") }}
{{ . }}
{{- end }}
{{- end }}

{{/* partidor.natsConfig is the file of deploy/nats for this release: a region's, or the hub's with a user for each region's leaf,
made of the file's block for eu. */}}
{{- define "partidor.natsConfig" -}}
{{- with .Values.nats.inCluster -}}
{{- if and $.Values.region.enabled $.Values.controlPlane.enabled -}}
{{- fail "nats.inCluster.serverSecret: a server with users is a region's or the control plane's; make them two releases" -}}
{{- else if $.Values.region.enabled -}}
{{- if not .gatewayKey }}{{ fail "nats.inCluster.gatewayKey: must not be empty with nats.inCluster.serverSecret" }}{{ end -}}
{{- if not .hub }}{{ fail "nats.inCluster.hub: must not be empty with nats.inCluster.serverSecret" }}{{ end -}}
{{- $.Files.Get "files/nats-region.conf" | replace "REGION" $.Values.region.name -}}
{{- else -}}
{{- if not .rebalancerKey }}{{ fail "nats.inCluster.rebalancerKey: must not be empty with nats.inCluster.serverSecret" }}{{ end -}}
{{- $text := $.Files.Get "files/nats-hub.conf" -}}
{{- $block := "(?s)    \\{\n      nkey: \\$NATS_LEAF_%s\n.*?\n    \\}\n" -}}
{{- $eu := regexFind (printf $block "EU") $text -}}
{{- $leaves := list -}}
{{- range $.Values.controlPlane.regions -}}
{{- $key := get $.Values.nats.inCluster.leafKeys .name | default "" -}}
{{- if not $key }}{{ fail (printf "nats.inCluster.leafKeys.%s: must not be empty with nats.inCluster.serverSecret" .name) }}{{ end -}}
{{- $leaves = append $leaves (regexReplaceAllLiteral "\\.eu\\b" ($eu | replace "$NATS_LEAF_EU" $key) (printf ".%s" .name)) -}}
{{- end -}}
{{- $text = regexReplaceAllLiteral (printf $block "US") $text "" -}}
{{- $text | replace $eu (join "" $leaves) | replace "$NATS_REBALANCER" .rebalancerKey -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "partidor.rebalancerMounts" -}}
- {name: config, mountPath: /etc/partidor, readOnly: true}
- {name: postgres, mountPath: /run/secrets/postgres, readOnly: true}
{{- include "partidor.natsMounts" . }}
{{- range .Values.controlPlane.tokens }}
- {name: token-{{ .name }}, mountPath: /run/secrets/token-{{ .name }}, readOnly: true}
{{- end }}
{{- end }}

{{- define "partidor.rebalancerVolumes" -}}
- name: config
  configMap: {name: {{ include "partidor.fullname" . }}-rebalancer}
{{ include "partidor.secretVolume" (dict "name" "postgres" "secret" .Values.postgres.urlSecret "path" "url") }}
{{- include "partidor.natsVolumes" . }}
{{- range .Values.controlPlane.tokens }}
{{ include "partidor.secretVolume" (dict "name" (printf "token-%s" .name) "secret" .secret "path" "token") }}
{{- end }}
{{- end }}

{{/* partidor.percent writes parts per million as the programs do. */}}
{{- define "partidor.percent" -}}
{{- printf "%v%%" (divf (float64 .) 10000.0) -}}
{{- end }}
