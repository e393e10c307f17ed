{{/*
The program's configuration. What the chart decides is written here and may not
be repeated in the values' config or extraEnv; everything else comes from
config.
*/}}

{{/* The keys that are the chart's, by their names in the program's file. */}}
{{- define "headgate.ownKeys" -}}
- grpc.listen
- http.listen
- admin.listen
- insecure
- node.name
- dataDir
- nats.url
- nats.replicas
- nats.user
- nats.password
- nats.token
- nats.nkeyFile
- nats.credsFile
- nats.tls.caFile
- nats.tls.certFile
- nats.tls.keyFile
- cluster.name
- cluster.listen
- cluster.routes
- cluster.user
- cluster.password
- cluster.tls.caFile
- cluster.tls.certFile
- cluster.tls.keyFile
- policies.path
- policies.nvcf.address
- policies.nvcf.timeout
- policies.nvcf.cacheTTL
- policies.nvcf.tokenFile
- policies.nvcf.oauth.tokenURL
- policies.nvcf.oauth.clientID
- policies.nvcf.oauth.clientSecretFile
- policies.nvcf.oauth.scopes
- policies.nvcf.tls.enabled
- policies.nvcf.tls.caFile
- drain.notice
- drain.grace
- settle.timeout
- lifecycle.gracePeriod
- lifecycle.minReady
- lifecycle.leaveTimeout
- hash.secret
- hash.secretFile
- log.level
- log.format
{{- end -}}

{{/* A key's name in the environment: nats.tls.caFile is HEADGATE_NATS_TLS_CA_FILE. */}}
{{- define "headgate.envName" -}}
HEADGATE_{{ regexReplaceAll "([a-z])([A-Z])" . "${1}_${2}" | replace "." "_" | upper }}
{{- end -}}

{{- define "headgate.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $own := include "headgate.ownConfig" . | fromYaml -}}
{{- $all := mergeOverwrite $config $own -}}
{{- include "headgate.integers" $all -}}
{{- toYaml $all -}}
{{- end -}}

{{- define "headgate.ownConfig" -}}
grpc:
  listen: 0.0.0.0:7777
http:
  listen: 0.0.0.0:7778
admin:
  listen: 0.0.0.0:7776
insecure: {{ .Values.insecure }}
{{- if include "headgate.embedded" . }}
dataDir: /var/lib/headgate
{{- end }}
nats:
  {{- if .Values.nats.url }}
  url: {{ .Values.nats.url | quote }}
  {{- end }}
  replicas: {{ include "headgate.bucketReplicas" . }}
  {{- if eq .Values.nats.auth.kind "nkey" }}
  nkeyFile: /etc/headgate/nats-auth/nkey
  {{- else if eq .Values.nats.auth.kind "creds" }}
  credsFile: /etc/headgate/nats-auth/creds
  {{- end }}
  {{- with .Values.nats.tls }}
  {{- if .existingSecret }}
  tls:
    {{- include "headgate.tlsFiles" (dict "tls" . "dir" "/etc/headgate/nats-tls") | nindent 4 }}
  {{- end }}
  {{- end }}
{{- if include "headgate.clustered" . }}
cluster:
  name: {{ include "headgate.fullname" . }}
  listen: 0.0.0.0:6222
  routes:
    {{- range $i := until (int .Values.replicaCount) }}
    - nats-route://{{ include "headgate.fullname" $ }}-{{ $i }}.{{ include "headgate.headless" $ }}.{{ $.Release.Namespace }}.svc:6222
    {{- end }}
  {{- with .Values.embedded.tls }}
  {{- if .existingSecret }}
  tls:
    {{- include "headgate.tlsFiles" (dict "tls" . "dir" "/etc/headgate/routes-tls") | nindent 4 }}
  {{- end }}
  {{- end }}
{{- end }}
policies:
  path: /etc/headgate/policies
  {{- if .Values.nvcf.address }}
  nvcf:
    {{- include "headgate.nvcf" . | nindent 4 }}
  {{- end }}
drain:
  notice: {{ .Values.drain.notice }}
  grace: {{ .Values.drain.grace }}
settle:
  timeout: {{ .Values.settle.timeout }}
lifecycle:
  gracePeriod: {{ int .Values.terminationGracePeriodSeconds }}s
  minReady: {{ .Values.lifecycle.minReady }}
  leaveTimeout: {{ .Values.lifecycle.leaveTimeout }}
{{- if include "headgate.hashSecret" . }}
hash:
  secretFile: /etc/headgate/hash/secret
{{- end }}
log:
  level: {{ .Values.log.level }}
  format: {{ .Values.log.format }}
{{- end -}}

{{- define "headgate.tlsFiles" -}}
{{- with .tls.caKey }}
caFile: {{ $.dir }}/ca.crt
{{- end }}
{{- with .tls.certKey }}
certFile: {{ $.dir }}/tls.crt
{{- end }}
{{- with .tls.keyKey }}
keyFile: {{ $.dir }}/tls.key
{{- end }}
{{- end -}}

{{- define "headgate.nvcf" -}}
{{- $nvcf := .Values.nvcf -}}
address: {{ $nvcf.address | quote }}
timeout: {{ $nvcf.timeout }}
cacheTTL: {{ $nvcf.cacheTTL }}
{{- if $nvcf.token.existingSecret }}
tokenFile: /etc/headgate/nvcf-token/token
{{- end }}
{{- if $nvcf.oauth.tokenURL }}
oauth:
  tokenURL: {{ $nvcf.oauth.tokenURL | quote }}
  clientID: {{ $nvcf.oauth.clientID | quote }}
  clientSecretFile: /etc/headgate/nvcf-oauth/client-secret
  {{- with $nvcf.oauth.scopes }}
  scopes:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
tls:
  enabled: {{ $nvcf.tls.enabled }}
  {{- if $nvcf.tls.existingSecret }}
  caFile: /etc/headgate/nvcf-tls/ca.crt
  {{- end }}
{{- end -}}

{{/* The environment that the chart sets; extraEnv follows it. */}}
{{- define "headgate.env" -}}
- name: HEADGATE_NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- if include "headgate.clustered" . }}
{{- $auth := .Values.embedded.auth }}
{{ include "headgate.secretEnv" (dict "key" "cluster.user" "secret" (include "headgate.routesSecret" .) "item" $auth.userKey) }}
{{ include "headgate.secretEnv" (dict "key" "cluster.password" "secret" (include "headgate.routesSecret" .) "item" $auth.passwordKey) }}
{{- end }}
{{- $nats := .Values.nats.auth }}
{{- if eq $nats.kind "user" }}
{{ include "headgate.secretEnv" (dict "key" "nats.user" "secret" $nats.existingSecret "item" $nats.userKey) }}
{{ include "headgate.secretEnv" (dict "key" "nats.password" "secret" $nats.existingSecret "item" $nats.passwordKey) }}
{{- else if eq $nats.kind "token" }}
{{ include "headgate.secretEnv" (dict "key" "nats.token" "secret" $nats.existingSecret "item" $nats.tokenKey) }}
{{- end }}
{{- end -}}

{{- define "headgate.secretEnv" -}}
- name: {{ include "headgate.envName" .key }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret | quote }}
      key: {{ .item | quote }}
{{- end -}}

{{/* What the helm test asks about: a function of its own, denied to all but one account. */}}
{{- define "headgate.testPolicy" -}}
function: headgate-helm-test
account:
  rates: 0-S
  overrides:
    admitted: 1000-S
{{- end -}}

{{- define "headgate.policies" -}}
{{- $policies := deepCopy .Values.policies -}}
{{- include "headgate.integers" $policies -}}
# What the values' policies hold.
{{- range $policies }}
---
{{ toYaml . }}
{{- end }}
{{- end -}}
