{{- define "web-app.labels" -}}
app.kubernetes.io/name: {{ .Release.Name }}
app.kubernetes.io/part-of: {{ .Values.domain }}
{{- with .Values.version }}
app.kubernetes.io/version: {{ . }}
{{- end }}
app.kubernetes.io/managed-by: bowline
shop.example.com/environment: {{ .Values.environment.name }}
shop.example.com/team: {{ .Values.team }}
{{- end }}

{{- define "web-app.addonLabels" -}}
app.kubernetes.io/name: {{ .Release.Name }}
app.kubernetes.io/managed-by: bowline
shop.example.com/environment: {{ .Values.environment.name }}
{{- end }}

{{- define "web-app.selector" -}}
app.kubernetes.io/name: {{ .Release.Name }}
{{- end }}

{{- define "web-app.secretEnv" -}}
{{- range .Values.secretEnv }}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret }}
      key: {{ .key }}
      optional: {{ .optional | default false }}
{{- end }}
{{- end }}

{{- define "web-app.probe" -}}
{{- $probes := .probes -}}
{{- if eq $probes.protocol "http" }}
httpGet:
  path: {{ .probe.path }}
  port: {{ $probes.endpoint }}
{{- else if eq $probes.protocol "grpc" }}
grpc:
{{- range .endpoints }}
{{- if eq .name $probes.endpoint }}
  port: {{ .port }}
{{- end }}
{{- end }}
{{- else }}
tcpSocket:
  port: {{ $probes.endpoint }}
{{- end }}
periodSeconds: {{ .probe.periodSeconds }}
{{- with .probe.timeoutSeconds }}
timeoutSeconds: {{ . }}
{{- end }}
failureThreshold: {{ .probe.failureThreshold }}
{{- end }}
