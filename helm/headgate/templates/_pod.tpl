{{/*
The pod, the same in both shapes.
*/}}
{{- define "headgate.pod" -}}
metadata:
  annotations:
    # A change of the configuration rolls the pods; one of the policies does not.
    checksum/config: {{ include "headgate.config" . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  labels:
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with .Values.commonLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- include "headgate.selectorLabels" . | nindent 4 }}
spec:
  serviceAccountName: {{ include "headgate.serviceAccountName" . | quote }}
  automountServiceAccountToken: false
  # The variables of Services named headgate would look like configuration.
  enableServiceLinks: false
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  terminationGracePeriodSeconds: {{ int .Values.terminationGracePeriodSeconds }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpread.keys }}
  topologySpreadConstraints:
    {{- range . }}
    - maxSkew: 1
      topologyKey: {{ . | quote }}
      whenUnsatisfiable: {{ $.Values.topologySpread.whenUnsatisfiable }}
      labelSelector:
        matchLabels:
          {{- include "headgate.selectorLabels" $ | nindent 10 }}
    {{- end }}
  {{- end }}
  containers:
    - name: headgate
      {{- include "headgate.container" . | nindent 6 }}
  volumes:
    {{- include "headgate.volumes" . | nindent 4 }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{- define "headgate.container" -}}
image: {{ include "headgate.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command: ["/headgate"]
args: ["serve", "--config", "/etc/headgate/config/headgate.yaml"]
env:
  {{- include "headgate.env" . | nindent 2 }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  - name: grpc
    containerPort: 7777
  - name: http
    containerPort: 7778
  - name: admin
    containerPort: 7776
  {{- if include "headgate.clustered" . }}
  - name: routes
    containerPort: 6222
  {{- end }}
# Has it joined once? Does it work? May it be called?
startupProbe:
  {{- include "headgate.probe" (dict "path" "/readyz" "probe" .Values.probes.startup) | nindent 2 }}
livenessProbe:
  {{- include "headgate.probe" (dict "path" "/livez" "probe" .Values.probes.live) | nindent 2 }}
readinessProbe:
  {{- include "headgate.probe" (dict "path" "/readyz" "probe" .Values.probes.ready) | nindent 2 }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
volumeMounts:
  {{- include "headgate.volumeMounts" . | nindent 2 }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "headgate.volumeMounts" -}}
- name: config
  mountPath: /etc/headgate/config
  readOnly: true
- name: policies
  mountPath: /etc/headgate/policies
  readOnly: true
{{- range include "headgate.secretFiles" . | fromYamlArray }}
- name: {{ .name }}
  mountPath: /etc/headgate/{{ .name }}
  readOnly: true
{{- end }}
{{- if include "headgate.embedded" . }}
- name: data
  mountPath: /var/lib/headgate
{{- end }}
{{- end -}}

{{- define "headgate.volumes" -}}
- name: config
  configMap:
    name: {{ include "headgate.fullname" . }}-config
- name: policies
  projected:
    sources:
      - configMap:
          name: {{ include "headgate.fullname" . }}-policies
      {{- with .Values.policiesConfigMap }}
      - configMap:
          name: {{ . | quote }}
      {{- end }}
{{- range include "headgate.secretFiles" . | fromYamlArray }}
- name: {{ .name }}
  secret:
    secretName: {{ .secret | quote }}
    defaultMode: 0440
    items:
      {{- toYaml .items | nindent 6 }}
{{- end }}
{{- if and (include "headgate.embedded" .) (not .Values.persistence.enabled) }}
- name: data
  emptyDir:
    {{- if .Values.persistence.size }}
    sizeLimit: {{ .Values.persistence.size }}
    {{- end }}
{{- end }}
{{- end -}}

{{/* The secrets that are files: the name of the volume and folder, and what is in it. */}}
{{- define "headgate.secretFiles" -}}
{{- with include "headgate.hashSecret" . }}
- name: hash
  secret: {{ . | quote }}
  items: [{key: {{ $.Values.hash.key | quote }}, path: secret}]
{{- end }}
{{- $auth := .Values.nats.auth }}
{{- if has $auth.kind (list "nkey" "creds") }}
- name: nats-auth
  secret: {{ $auth.existingSecret | quote }}
  items: [{key: {{ ternary $auth.nkeyKey $auth.credsKey (eq $auth.kind "nkey") | quote }}, path: {{ $auth.kind }}}]
{{- end }}
{{- with .Values.nats.tls }}
{{- if .existingSecret }}
- name: nats-tls
  secret: {{ .existingSecret | quote }}
  items: [{{ include "headgate.tlsItems" . }}]
{{- end }}
{{- end }}
{{- with .Values.embedded.tls }}
{{- if and .existingSecret (include "headgate.clustered" $) }}
- name: routes-tls
  secret: {{ .existingSecret | quote }}
  items: [{{ include "headgate.tlsItems" . }}]
{{- end }}
{{- end }}
{{- with .Values.nvcf.token.existingSecret }}
- name: nvcf-token
  secret: {{ . | quote }}
  items: [{key: {{ $.Values.nvcf.token.key | quote }}, path: token}]
{{- end }}
{{- with .Values.nvcf.oauth.existingSecret }}
- name: nvcf-oauth
  secret: {{ . | quote }}
  items: [{key: {{ $.Values.nvcf.oauth.key | quote }}, path: client-secret}]
{{- end }}
{{- with .Values.nvcf.tls.existingSecret }}
- name: nvcf-tls
  secret: {{ . | quote }}
  items: [{key: {{ $.Values.nvcf.tls.caKey | quote }}, path: ca.crt}]
{{- end }}
{{- end -}}

{{- define "headgate.tlsItems" -}}
{{- $items := list -}}
{{- range $path, $key := dict "ca.crt" .caKey "tls.crt" .certKey "tls.key" .keyKey -}}
{{- if $key -}}
{{- $items = append $items (printf "{key: %q, path: %s}" $key $path) -}}
{{- end -}}
{{- end -}}
{{- join ", " $items -}}
{{- end -}}
