{{- /* The server's container, and what its pod needs. Argument: dict "root" the chart's scope, "sidecar" a bool. */}}

{{- define "quantd.env" -}}
{{- $v := .root.Values }}
{{- $env := dict "QUANTD_HTTP_LISTEN" (printf "[::]:%d" (int $v.ports.http)) "QUANTD_DRAIN_SECONDS" ($v.drainSeconds | toString) }}
{{- if .sidecar }}
{{- $_ := set $env "QUANTD_LISTEN" (printf "unix:%s" $v.sidecar.socketPath) }}
{{- $_ := set $env "QUANTD_SOCKET_MODE" $v.sidecar.socketMode }}
{{- else }}
{{- $_ := set $env "QUANTD_LISTEN" (printf "[::]:%d" (int $v.ports.grpc)) }}
{{- $_ := set $env "QUANTD_LAME_DUCK_SECONDS" ($v.lameDuckSeconds | toString) }}
{{- end }}
{{- if $v.tls.secretName }}
{{- $_ := set $env "QUANTD_TLS_CERT" (printf "/etc/quantd/tls/%s" $v.tls.certKey) }}
{{- $_ := set $env "QUANTD_TLS_KEY" (printf "/etc/quantd/tls/%s" $v.tls.keyKey) }}
{{- with $v.tls.clientCaKey }}{{ $_ := set $env "QUANTD_TLS_CLIENT_CA" (printf "/etc/quantd/tls/%s" .) }}{{ end }}
{{- end }}
{{- if $v.auth.secretName }}{{ $_ := set $env "QUANTD_AUTH_TOKEN_FILE" (printf "/etc/quantd/auth/%s" $v.auth.key) }}{{ end }}
{{- if $v.sharedMemory.enabled }}{{ $_ := set $env "QUANTD_SHARED_MEMORY_DIR" $v.sharedMemory.mountPath }}{{ end }}
{{- range $name, $value := $v.flags }}
{{- /* Whole numbers of a values file are floats here: 1e+08 is not a number of bytes. */}}
{{- $text := ternary (printf "%.0f" $value) (toString $value) (and (kindIs "float64" $value) (eq (toString (floor $value)) (toString $value))) }}
{{- $_ := set $env (printf "QUANTD_%s" (upper $name)) $text }}
{{- end }}
{{- /* A variable of extraEnv replaces the chart's own. */}}
{{- range $v.extraEnv }}{{ $_ := unset $env .name }}{{ end }}
{{- range $name, $value := $env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- with $v.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "quantd.volumeMounts" -}}
{{- $v := .root.Values }}
{{- if .sidecar }}
- name: quantd-socket
  mountPath: {{ dir $v.sidecar.socketPath }}
{{- end }}
{{- if $v.sharedMemory.enabled }}
- name: quantd-memory
  mountPath: {{ $v.sharedMemory.mountPath }}
{{- end }}
{{- if $v.tls.secretName }}
- name: quantd-tls
  mountPath: /etc/quantd/tls
  readOnly: true
{{- end }}
{{- if $v.auth.secretName }}
- name: quantd-auth
  mountPath: /etc/quantd/auth
  readOnly: true
{{- end }}
{{- with $v.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "quantd.volumes" -}}
{{- $v := .root.Values }}
{{- if .sidecar }}
- name: quantd-socket
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
{{- end }}
{{- if $v.sharedMemory.enabled }}
- name: quantd-memory
  emptyDir:
    medium: Memory
    sizeLimit: {{ $v.sharedMemory.sizeLimit }}
{{- end }}
{{- /* Whole folders, not single files: only folders are updated when a secret changes. */}}
{{- if $v.tls.secretName }}
- name: quantd-tls
  secret:
    secretName: {{ $v.tls.secretName | quote }}
    defaultMode: 0440
{{- end }}
{{- if $v.auth.secretName }}
- name: quantd-auth
  secret:
    secretName: {{ $v.auth.secretName | quote }}
    defaultMode: 0440
{{- end }}
{{- with $v.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "quantd.httpProbe" -}}
httpGet:
  path: {{ .path | quote }}
  port: {{ ternary "quantd-http" "http" .sidecar }}
  {{- if .root.Values.tls.secretName }}
  scheme: HTTPS
  {{- end }}
{{- end }}

{{- define "quantd.container" -}}
{{- $v := .root.Values }}
name: quantd
image: {{ include "quantd.image" .root }}
imagePullPolicy: {{ $v.image.pullPolicy }}
{{- if .sidecar }}
# It starts before the application, and ends after it.
restartPolicy: Always
{{- end }}
env:
  {{- include "quantd.env" . | trim | nindent 2 }}
{{- with $v.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  {{- if not .sidecar }}
  - name: grpc
    containerPort: {{ $v.ports.grpc }}
  {{- end }}
  - name: {{ ternary "quantd-http" "http" .sidecar }}
    containerPort: {{ $v.ports.http }}
# Until this succeeds, no other probe runs, so that a slow start does not get it killed.
startupProbe:
  {{- if .sidecar }}
  exec:
    command: ["/quantctl", "health", "--address=unix:{{ $v.sidecar.socketPath }}"]
  {{- else if $v.tls.secretName }}
  {{- include "quantd.httpProbe" (merge (dict "path" "/readyz") .) | nindent 2 }}
  {{- else }}
  grpc:
    port: {{ $v.ports.grpc }}
  {{- end }}
  {{- toYaml $v.probes.startup | nindent 2 }}
# Not ready from the first second of a drain; not live only when the process no longer answers.
readinessProbe:
  {{- include "quantd.httpProbe" (merge (dict "path" "/readyz") .) | nindent 2 }}
  {{- toYaml $v.probes.readiness | nindent 2 }}
livenessProbe:
  {{- include "quantd.httpProbe" (merge (dict "path" "/livez") .) | nindent 2 }}
  {{- toYaml $v.probes.liveness | nindent 2 }}
{{- include "quantd.given" (list 0 $v "lifecycle") }}
resources:
  {{- toYaml $v.resources | nindent 2 }}
{{- /* Not for init containers: many clusters refuse it there. */}}
{{- if and $v.resizePolicy (not .sidecar) }}
resizePolicy:
  {{- toYaml $v.resizePolicy | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml $v.securityContext | nindent 2 }}
{{- with include "quantd.volumeMounts" . | trim }}
volumeMounts:
  {{- . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "quantd.podSecurityContext" -}}
{{- $v := .root.Values }}
{{- $context := deepCopy $v.podSecurityContext }}
{{- /* The group that secrets, sockets and shared memory belong to. */}}
{{- if and (or .sidecar $v.tls.secretName $v.auth.secretName $v.sharedMemory.enabled) (not (hasKey $context "fsGroup")) (hasKey $context "runAsGroup") }}
{{- $_ := set $context "fsGroup" $context.runAsGroup }}
{{- end }}
{{- toYaml $context }}
{{- end }}

{{- define "quantd.scrapeAnnotations" -}}
{{- if .Values.metrics.scrapeAnnotations }}
prometheus.io/scrape: "true"
prometheus.io/port: {{ .Values.ports.http | quote }}
prometheus.io/path: /metrics
{{- if .Values.tls.secretName }}
prometheus.io/scheme: https
{{- end }}
{{- end }}
{{- end }}
