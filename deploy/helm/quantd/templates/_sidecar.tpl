{{- /* For charts that have this one as a dependency, with mode: sidecar. Argument: .Subcharts.quantd (README.md, "Sidecar"). */}}

{{- /* An element of initContainers. */}}
{{- define "quantd.sidecar.container" -}}
{{- include "quantd.values" . }}
{{- include "quantd.check" . }}
{{- include "quantd.container" (dict "root" . "sidecar" true) }}
{{- end }}

{{- /* Elements of volumes. */}}
{{- define "quantd.sidecar.volumes" -}}
{{- include "quantd.values" . }}
{{- include "quantd.volumes" (dict "root" . "sidecar" true) | trim }}
{{- end }}

{{- /* Elements of the application's volumeMounts. */}}
{{- define "quantd.sidecar.volumeMounts" -}}
{{- include "quantd.values" . }}
- name: quantd-socket
  mountPath: {{ dir .Values.sidecar.socketPath }}
{{- if .Values.sharedMemory.enabled }}
- name: quantd-memory
  mountPath: {{ .Values.sharedMemory.mountPath }}
{{- end }}
{{- end }}

{{- /* Elements of the application's env: where clients find the server. */}}
{{- define "quantd.sidecar.env" -}}
{{- include "quantd.values" . }}
- name: QUANTD_ADDRESS
  value: {{ printf "unix:%s" .Values.sidecar.socketPath }}
{{- if .Values.sharedMemory.enabled }}
- name: QUANTD_SHARED_MEMORY_DIR
  value: {{ .Values.sharedMemory.mountPath }}
{{- end }}
{{- end }}

{{- /* The pod's securityContext: one group for both containers, so that the application may open the socket. */}}
{{- define "quantd.sidecar.podSecurityContext" -}}
{{- include "quantd.values" . }}
{{- include "quantd.podSecurityContext" (dict "root" . "sidecar" true) }}
{{- end }}

{{- /* Labels of the pod, by which the PodMonitor finds it. */}}
{{- define "quantd.sidecar.labels" -}}
{{- include "quantd.values" . }}
quantd/sidecar: {{ .Release.Name | quote }}
{{- end }}
