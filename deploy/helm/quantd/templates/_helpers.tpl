{{- define "quantd.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "quantd.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "quantd.selectorLabels" -}}
app.kubernetes.io/name: {{ include "quantd.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "quantd.testLabels" -}}
app.kubernetes.io/name: {{ include "quantd.name" . }}-test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "quantd.ownLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "quantd.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The labels of an object, each key once. `more` wins over values' `labels`, and the chart's own over both, because selectors
need them. Argument: dict "root" the chart's scope, "more" labels of this object alone. */}}
{{- define "quantd.labelsWith" -}}
{{- toYaml (merge (include "quantd.ownLabels" .root | fromYaml) (deepCopy .more) .root.Values.labels) }}
{{- end }}

{{- /* Fields that have the names of values: the named values are written as they are, and empty ones are left out. Argument: a list of the
indentation, the map that contains the values, and the names. */}}
{{- define "quantd.given" -}}
{{- range $name := slice . 2 }}
{{- with get (index $ 1) $name }}{{ toYaml (dict $name .) | nindent (index $ 0) }}{{ end }}
{{- end }}
{{- end }}

{{- /* The metadata of an object. Argument: dict "root" the chart's scope and, where wanted, "name" in place of the chart's full name, "suffix" of
that name, "namespace", "labels" of this object alone, "annotations". */}}
{{- define "quantd.metadata" -}}
metadata:
  name: {{ .name | default (printf "%s%s" (include "quantd.fullname" .root) (.suffix | default "")) }}
  labels:
    {{- include "quantd.labelsWith" (dict "root" .root "more" (.labels | default dict)) | nindent 4 }}
  {{- include "quantd.given" (list 2 . "namespace" "annotations") }}
{{- end }}

{{- define "quantd.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "quantd.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "quantd.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}
{{- end }}

{{- /* Values that agree with the schema one by one, but not with each other. */}}
{{- define "quantd.check" -}}
{{- $v := .Values }}
{{- $least := add $v.lameDuckSeconds $v.drainSeconds 10 (dig "preStop" "sleep" "seconds" 0 (default dict $v.lifecycle)) }}
{{- if lt (int $v.terminationGracePeriodSeconds) (int $least) }}
{{- fail (printf "terminationGracePeriodSeconds is %d, must be %d or more: lameDuckSeconds + drainSeconds + 10 + lifecycle.preStop.sleep.seconds" (int $v.terminationGracePeriodSeconds) (int $least)) }}
{{- end }}
{{- if and $v.tls.clientCaKey (not $v.tls.secretName) }}
{{- fail "tls.clientCaKey is given, tls.secretName is not: clients show certificates in TLS only" }}
{{- end }}
{{- if eq (int $v.ports.grpc) (int $v.ports.http) }}{{ fail (printf "ports.grpc and ports.http are both %d" (int $v.ports.grpc)) }}{{ end }}
{{- $names := dict }}
{{- range $v.extraEnv }}
{{- if hasKey $names .name }}{{ fail (printf "extraEnv has %s twice" .name) }}{{ end }}
{{- $_ := set $names .name true }}
{{- end }}
{{- if and (eq $v.dnsPolicy "None") (not $v.dnsConfig.nameservers) }}
{{- fail "dnsPolicy is None and dnsConfig.nameservers is empty: a pod has no name server then" }}
{{- end }}
{{- $alerts := list }}
{{- range (.Files.Get "files/alerts.yml" | fromYaml).groups }}
{{- range .rules }}{{ $alerts = append $alerts (default "" .alert) }}{{ end }}
{{- end }}
{{- range $v.metrics.prometheusRule.disabledAlerts }}
{{- if not (has . $alerts) }}
{{- fail (printf "metrics.prometheusRule.disabledAlerts has %s, which is not an alert of deploy/monitoring/alerts.yml" .) }}
{{- end }}
{{- end }}
{{- if and $v.autoscaling.enabled (ne $v.mode "deployment") }}
{{- fail (printf "autoscaling.enabled is true and mode is %s: only a deployment has replicas" $v.mode) }}
{{- end }}
{{- if and $v.autoscaling.enabled (gt (int $v.autoscaling.minReplicas) (int $v.autoscaling.maxReplicas)) }}
{{- fail (printf "autoscaling.minReplicas is %d, autoscaling.maxReplicas is %d" (int $v.autoscaling.minReplicas) (int $v.autoscaling.maxReplicas)) }}
{{- end }}
{{- if and $v.autoscaling.enabled (not $v.autoscaling.metric) (not $v.autoscaling.cpuUtilization) }}
{{- fail "autoscaling.enabled is true, autoscaling.metric is empty and autoscaling.cpuUtilization is 0: nothing to scale on" }}
{{- end }}
{{- if and $v.grpcRoute.enabled (not $v.grpcRoute.parentRefs) }}
{{- fail "grpcRoute.enabled is true and grpcRoute.parentRefs is empty: name the Gateway" }}
{{- end }}
{{- if and $v.certificate.enabled (not $v.certificate.issuerRef.name) }}
{{- fail "certificate.enabled is true and certificate.issuerRef.name is empty: name the Issuer or ClusterIssuer" }}
{{- end }}
{{- if and $v.certificate.enabled (eq $v.mode "sidecar") }}
{{- fail "certificate.enabled is true and mode is sidecar, which has no service to name" }}
{{- end }}
{{- if and (ne $v.service.type "LoadBalancer") (or $v.service.loadBalancerClass $v.service.loadBalancerSourceRanges) }}
{{- fail (printf "service.loadBalancerClass or service.loadBalancerSourceRanges is given and service.type is %s: must be LoadBalancer" $v.service.type) }}
{{- end }}
{{- if and (eq $v.service.type "ClusterIP") $v.service.externalTrafficPolicy }}
{{- fail "service.externalTrafficPolicy is given and service.type is ClusterIP: must be NodePort or LoadBalancer" }}
{{- end }}
{{- if and $v.metrics.podMonitor.enabled $v.metrics.serviceMonitor.enabled }}
{{- fail "metrics.podMonitor.enabled and metrics.serviceMonitor.enabled are both true: every pod would be scraped twice" }}
{{- end }}
{{- if and $v.metrics.serviceMonitor.enabled (eq $v.mode "sidecar") }}
{{- fail "metrics.serviceMonitor.enabled is true and mode is sidecar, which has no service: take metrics.podMonitor" }}
{{- end }}
{{- end }}
