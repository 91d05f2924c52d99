{{- /* Puts into .Values what is missing there and values.yaml has. `helm upgrade --reuse-values` renders a new chart with the values of
the old one, which lack what is new. What a user may empty key by key (security contexts, resources) is filled as a whole only. */}}
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
