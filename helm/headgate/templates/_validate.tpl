{{/*
What the schema cannot tell. All faults are collected and reported at once, each
with the value's name and the reason.
*/}}
{{- define "headgate.validate" -}}
{{- $faults := list -}}
{{- range list "shape" "access" "nats" "nvcf" "names" "env" "config" "policies" "volumes" "labels" "timing" -}}
{{- range include (printf "headgate.%s" (ternary . (printf "check.%s" .) (eq . "timing"))) $ | splitList "\n" -}}
{{- if trim . -}}
{{- $faults = append $faults (printf "  - %s" (trim .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $faults -}}
{{- fail (printf "the values do not fit together:\n%s\n" (join "\n" $faults)) -}}
{{- end -}}
{{- end -}}

{{- define "headgate.check.shape" -}}
{{- $n := int .Values.replicaCount -}}
{{- if include "headgate.embedded" . }}
{{- if .Values.autoscaling.enabled }}
autoscaling.enabled: not without nats.url: each pod carries a member of the NATS cluster, and members that come and go with the load would take its majority away; scale by hand, or run NATS beside it
{{- end }}
{{- if eq (mod $n 2) 0 }}
replicaCount={{ $n }}: must be odd without nats.url: the pods are members of a NATS cluster, and an even number bears no more losses than one less
{{- end }}
{{- if gt (int (include "headgate.bucketReplicas" .)) $n }}
nats.replicas={{ include "headgate.bucketReplicas" . }}: there are only {{ $n }} servers to keep them (replicaCount)
{{- end }}
{{- $loss := div (sub $n 1) 2 -}}
{{- if and (gt $n 1) .Values.podDisruptionBudget.enabled (gt (int .Values.podDisruptionBudget.maxUnavailable) (int $loss)) }}
podDisruptionBudget.maxUnavailable={{ .Values.podDisruptionBudget.maxUnavailable }}: of {{ $n }} members at most {{ $loss }} may be away at a time, or the counters have no majority
{{- end }}
{{- $now := lookup "apps/v1" "StatefulSet" .Release.Namespace (include "headgate.fullname" .) }}
{{- if and $now (eq $n 1) (gt (dig "spec" "replicas" 1 $now | int) 1) }}
replicaCount=1: the release has {{ dig "spec" "replicas" 1 $now }} members now, and a member's store cannot become that of a server alone
{{- end }}
{{- else if .Values.autoscaling.enabled }}
{{- if gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas) }}
autoscaling.minReplicas={{ .Values.autoscaling.minReplicas }}: is more than autoscaling.maxReplicas={{ .Values.autoscaling.maxReplicas }}
{{- end }}
{{- if not (or .Values.autoscaling.targetCPUUtilizationPercentage .Values.autoscaling.targetMemoryUtilizationPercentage) }}
autoscaling: needs targetCPUUtilizationPercentage or targetMemoryUtilizationPercentage
{{- end }}
{{- end }}
{{- end -}}

{{- define "headgate.check.access" -}}
{{- if not .Values.insecure }}
insecure=false: the front doors listen on the pod's address and have no authentication yet: who reaches them may spend any account's budget. Set insecure=true if the network is trusted, and keep networkPolicy.clients narrow
{{- end }}
{{- if and .Values.podMonitor.enabled .Values.networkPolicy.enabled (not .Values.networkPolicy.monitoring) }}
networkPolicy.monitoring: must name the peers that may scrape, for podMonitor.enabled, or nothing will be scraped
{{- end }}
{{- end -}}

{{- define "headgate.check.nats" -}}
{{- $auth := .Values.nats.auth -}}
{{- if and (ne $auth.kind "none") (not $auth.existingSecret) }}
nats.auth.existingSecret: is required for nats.auth.kind={{ $auth.kind }}
{{- end }}
{{- if and (eq $auth.kind "none") $auth.existingSecret }}
nats.auth.kind: must say what nats.auth.existingSecret={{ $auth.existingSecret }} holds
{{- end }}
{{- if and (include "headgate.embedded" .) (or (ne $auth.kind "none") .Values.nats.tls.existingSecret) }}
nats.auth, nats.tls: go with nats.url; members of the embedded cluster have embedded.auth and embedded.tls
{{- end }}
{{- if ne (empty .Values.nats.tls.certKey) (empty .Values.nats.tls.keyKey) }}
nats.tls.certKey, nats.tls.keyKey: go together
{{- end }}
{{- end -}}

{{- define "headgate.check.nvcf" -}}
{{- $nvcf := .Values.nvcf -}}
{{- if and (not $nvcf.address) (or $nvcf.token.existingSecret $nvcf.oauth.tokenURL) }}
nvcf.address: is required for nvcf.token and nvcf.oauth
{{- end }}
{{- if and $nvcf.token.existingSecret $nvcf.oauth.tokenURL }}
nvcf.token.existingSecret, nvcf.oauth.tokenURL: are two ways to authenticate; set one
{{- end }}
{{- if and $nvcf.oauth.tokenURL (not (and $nvcf.oauth.clientID $nvcf.oauth.existingSecret)) }}
nvcf.oauth.tokenURL: needs nvcf.oauth.clientID and nvcf.oauth.existingSecret
{{- end }}
{{- end -}}

{{- define "headgate.check.names" -}}
{{- $name := include "headgate.fullname" . -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) }}
fullnameOverride: the name {{ $name | quote }} is none for a Service, which begins with a letter and has letters, digits and '-' only; set fullnameOverride
{{- end }}
{{- end -}}

{{- define "headgate.check.env" -}}
{{- $taken := dict -}}
{{- range include "headgate.env" . | fromYamlArray -}}
{{- $_ := set $taken .name "is set by the chart" -}}
{{- end -}}
{{- range include "headgate.ownKeys" . | fromYamlArray -}}
{{- $name := include "headgate.envName" . -}}
{{- if not (hasKey $taken $name) -}}
{{- $_ := set $taken $name (printf "would replace %s, which the chart decides" .) -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraEnv }}
{{- if hasKey $taken .name }}
extraEnv: {{ .name }} {{ get $taken .name }}
{{- end }}
{{- $_ := set $taken .name "is given twice" }}
{{- end }}
{{- end -}}

{{/* The schema refuses the chart's own keys: they are not in its config. */}}
{{- define "headgate.check.config" -}}
{{- with dig "policies" "order" list .Values.config }}
{{- if not (has "file" .) }}
config.policies.order: must name file: the chart hands policies over in files
{{- end }}
{{- end }}
{{- end -}}

{{- define "headgate.check.policies" -}}
{{- $seen := dict -}}
{{- range .Values.policies }}
{{- $name := printf "%s version %s" (.function | quote) (default "*" .version | quote) }}
{{- if hasKey $seen $name }}
policies: function {{ $name }} has two
{{- end }}
{{- $_ := set $seen $name true }}
{{- if and $.Values.tests.enabled (eq .function "headgate-helm-test") }}
policies: function "headgate-helm-test" is the helm test's own; rename it or set tests.enabled=false
{{- end }}
{{- end }}
{{- end -}}

{{- define "headgate.check.volumes" -}}
{{- $names := dict -}}
{{- range include "headgate.volumes" . | fromYamlArray -}}{{- $_ := set $names .name true -}}{{- end -}}
{{- $_ := set $names "data" true -}}
{{- range .Values.extraVolumes }}
{{- if hasKey $names .name }}
extraVolumes: the name {{ .name }} is taken
{{- end }}
{{- $_ := set $names .name true }}
{{- end }}
{{- $paths := dict -}}
{{- range include "headgate.volumeMounts" . | fromYamlArray -}}{{- $_ := set $paths .mountPath true -}}{{- end -}}
{{- range .Values.extraVolumeMounts }}
{{- if hasKey $paths .mountPath }}
extraVolumeMounts: the path {{ .mountPath }} is taken
{{- end }}
{{- $_ := set $paths .mountPath true }}
{{- end }}
{{- end -}}

{{- define "headgate.check.labels" -}}
{{- range $where := list "commonLabels" "podLabels" }}
{{- range $key, $_ := get $.Values $where }}
{{- if or (hasPrefix "app.kubernetes.io/" $key) (eq $key "helm.sh/chart") }}
{{ $where }}: {{ $key }} is set by the chart
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
