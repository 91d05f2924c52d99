{{- /* Adds to .Values the defaults of values.yaml that are missing there. `helm upgrade --reuse-values` renders a new chart with the values of
the old one, which lack new keys. Values that a user may empty key by key (security contexts, resources) are added only as a whole. */}}
{{- define "quantd.values" -}}
{{- include "quantd.fill" (dict "into" .Values "from" (.Files.Get "files/values.yaml" | fromYaml)) }}
{{- if and .Values.certificate.enabled (not .Values.tls.secretName) }}
{{- $_ := set .Values.tls "secretName" (printf "%s-tls" (include "quantd.fullname" .)) }}
{{- end }}
{{- end }}

{{- define "quantd.fill" -}}
{{- $into := .into }}
{{- range $key, $value := .from }}
{{- if not (hasKey $into $key) }}
{{- $_ := set $into $key $value }}
{{- else if and (kindIs "map" $value) (kindIs "map" (get $into $key)) (not (has $key (list "podSecurityContext" "securityContext" "resources"))) }}
{{- include "quantd.fill" (dict "into" (get $into $key) "from" $value) }}
{{- end }}
{{- end }}
{{- end }}
