{{/*
Time. Everything here is in milliseconds, and everything that must fit together
is in this file: the bounds of a shutdown, the grace period and the probes.
The program is given the same bounds and checks them by the same sum.
*/}}

{{/* A duration with one unit: 500ms, 3s, 2m. */}}
{{- define "headgate.milliseconds" -}}
{{- $number := regexFind "^[0-9]+" . | int64 -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- mul $number (get (dict "ms" 1 "s" 1000 "m" 60000) $unit) -}}
{{- end -}}

{{/* How long a probe takes to make up its mind. */}}
{{- define "headgate.patience" -}}
{{- add (mul (int64 .periodSeconds) (int64 .failureThreshold) 1000) (mul (int64 .timeoutSeconds) 1000) -}}
{{- end -}}

{{/* What does not fit, a line each; nothing when all is well. */}}
{{- define "headgate.timing" -}}
{{- $notice := include "headgate.milliseconds" .Values.drain.notice | int64 -}}
{{- $grace := include "headgate.milliseconds" .Values.drain.grace | int64 -}}
{{- $settle := include "headgate.milliseconds" .Values.settle.timeout | int64 -}}
{{- $leave := include "headgate.milliseconds" .Values.lifecycle.leaveTimeout | int64 -}}
{{- $slack := 1000 -}}{{/* four steps, a quarter of a second each to obey */}}
{{- $sum := add $notice $grace $settle $leave $slack -}}
{{- $limit := mul 1000 (int64 .Values.terminationGracePeriodSeconds) -}}
{{- if gt $sum $limit }}
terminationGracePeriodSeconds={{ .Values.terminationGracePeriodSeconds }}: a shutdown may take {{ $sum }}ms: drain.notice {{ .Values.drain.notice }} + drain.grace {{ .Values.drain.grace }} + settle.timeout {{ .Values.settle.timeout }} + lifecycle.leaveTimeout {{ .Values.lifecycle.leaveTimeout }}, and 1s for the steps between
{{- end }}
{{- $ready := include "headgate.patience" .Values.probes.ready | int64 -}}
{{- $live := include "headgate.patience" .Values.probes.live | int64 -}}
{{- $startup := include "headgate.patience" .Values.probes.startup | int64 -}}
{{- if gt $ready $notice }}
drain.notice={{ .Values.drain.notice }}: ends before the ready probe has noticed, which takes {{ $ready }}ms (probes.ready: periodSeconds x failureThreshold + timeoutSeconds)
{{- end }}
{{- if le $live $ready }}
probes.live: kills a pod after {{ $live }}ms, before probes.ready has taken it out of its Service, which takes {{ $ready }}ms
{{- end }}
{{- $joining := add 60000 (include "headgate.milliseconds" .Values.lifecycle.minReady | int64) -}}
{{- if lt $startup $joining }}
probes.startup: kills a pod that has not joined after {{ $startup }}ms; elections and recovery of a store, and lifecycle.minReady {{ .Values.lifecycle.minReady }}, may take {{ $joining }}ms
{{- end }}
{{- range $name, $probe := .Values.probes }}
{{- if gt (int $probe.timeoutSeconds) (int $probe.periodSeconds) }}
probes.{{ $name }}.timeoutSeconds={{ $probe.timeoutSeconds }}: is longer than periodSeconds={{ $probe.periodSeconds }}
{{- end }}
{{- end }}
{{- end -}}

{{/* How long a rollout may stand still: a pod may join as long as it may. */}}
{{- define "headgate.progressDeadlineSeconds" -}}
{{- $startup := include "headgate.patience" .Values.probes.startup | int64 -}}
{{- add (div $startup 1000) (int64 .Values.minReadySeconds) 60 -}}
{{- end -}}

{{- define "headgate.probe" -}}
httpGet:
  path: {{ .path }}
  port: admin
periodSeconds: {{ int .probe.periodSeconds }}
timeoutSeconds: {{ int .probe.timeoutSeconds }}
failureThreshold: {{ int .probe.failureThreshold }}
{{- end -}}
