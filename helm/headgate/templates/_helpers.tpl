{{/*
Names. The longest name that something is derived from is the StatefulSet's:
"<name>-<ten characters of hash>" becomes a label of its pods, and a label has
63 characters. What is longer is cut and marked with a hash, so that two long
names stay two names.
*/}}
{{- define "headgate.name" -}}
{{- include "headgate.cut" (default .Chart.Name .Values.nameOverride) -}}
{{- end -}}

{{- define "headgate.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- include "headgate.cut" .Values.fullnameOverride -}}
{{- else if contains $name .Release.Name -}}
{{- include "headgate.cut" .Release.Name -}}
{{- else -}}
{{- include "headgate.cut" (printf "%s-%s" .Release.Name $name) -}}
{{- end -}}
{{- end -}}

{{- define "headgate.cut" -}}
{{- if gt (len .) 52 -}}
{{- printf "%s-%s" (. | trunc 43 | trimSuffix "-") (. | sha256sum | trunc 8) -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{- define "headgate.headless" -}}
{{- include "headgate.fullname" . }}-headless
{{- end -}}

{{- define "headgate.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "headgate.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/*
Labels. Selectors never change over the life of a release, so nothing that a
version or a value changes may be among them.
*/}}
{{- define "headgate.selectorLabels" -}}
app.kubernetes.io/name: {{ include "headgate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: node
{{- end -}}

{{- define "headgate.testLabels" -}}
app.kubernetes.io/name: {{ include "headgate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: test
{{- end -}}

{{- define "headgate.labels" -}}
{{- with .Values.commonLabels }}
{{- toYaml . }}
{{ end -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "headgate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/*
Shape. "true" or nothing, as templates have it.
*/}}
{{- define "headgate.embedded" -}}
{{- if not .Values.nats.url }}true{{ end -}}
{{- end -}}

{{/* A server with others, which needs routes to them. */}}
{{- define "headgate.clustered" -}}
{{- if and (include "headgate.embedded" .) (gt (int .Values.replicaCount) 1) }}true{{ end -}}
{{- end -}}

{{/* The most pods that there will be, beside one more during a rollout. */}}
{{- define "headgate.mostPods" -}}
{{- if and .Values.autoscaling.enabled (not (include "headgate.embedded" .)) -}}
{{- int .Values.autoscaling.maxReplicas -}}
{{- else -}}
{{- int .Values.replicaCount -}}
{{- end -}}
{{- end -}}

{{/* Replicas of every bucket. */}}
{{- define "headgate.bucketReplicas" -}}
{{- if .Values.nats.replicas -}}
{{- int .Values.nats.replicas -}}
{{- else if eq (int (include "headgate.mostPods" .)) 1 -}}
1
{{- else -}}
3
{{- end -}}
{{- end -}}

{{/* Who the routes authenticate with: a secret of this name. */}}
{{- define "headgate.routesSecret" -}}
{{- default (printf "%s-routes" (include "headgate.fullname" .)) .Values.embedded.auth.existingSecret -}}
{{- end -}}

{{- define "headgate.hashSecret" -}}
{{- if .Values.hash.existingSecret -}}
{{- .Values.hash.existingSecret -}}
{{- else if .Values.hash.generate -}}
{{- include "headgate.fullname" . }}-hash
{{- end -}}
{{- end -}}

{{- define "headgate.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag -}}
{{- if .Values.image.digest -}}
{{- printf "%s:%s@%s" .Values.image.repository $tag .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository $tag -}}
{{- end -}}
{{- end -}}

{{/*
Whole numbers in values arrive as floating point, and a large one would be
written as 1e+06, which the program does not take for a whole number. This
turns them back, in place, in maps and in lists of maps.
*/}}
{{- define "headgate.integers" -}}
{{- if kindIs "map" . -}}
{{- range $key, $value := . -}}
{{- if and (kindIs "float64" $value) (eq $value (floor $value)) -}}
{{- $_ := set $ $key (int64 $value) -}}
{{- else -}}
{{- include "headgate.integers" $value -}}
{{- end -}}
{{- end -}}
{{- else if kindIs "slice" . -}}
{{- range . -}}{{- include "headgate.integers" . -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/* The port of "scheme://host:port", ".port" or the scheme's own. */}}
{{- define "headgate.portOfURL" -}}
{{- $url := urlParse (trim .) -}}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" -}}
{{- $usual := dict "http" "80" "ws" "80" "https" "443" "wss" "443" -}}
{{- default (get $usual $url.scheme | default "4222") $port -}}
{{- end -}}
