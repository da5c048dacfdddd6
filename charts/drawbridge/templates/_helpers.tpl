{{- define "drawbridge.labels" -}}
app.kubernetes.io/name: drawbridge
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "drawbridge.selector" -}}
app.kubernetes.io/name: drawbridge
app.kubernetes.io/component: server
{{- end }}

{{- define "drawbridge.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "drawbridge.features" -}}
{{- $on := list }}
{{- range list "access" "binding" "inventory" }}
{{- if index $.Values.features . }}{{ $on = append $on . }}{{ end }}
{{- end }}
{{- join "," $on }}
{{- end }}

{{/* Not empty when webhooks are answered, for which there is a certificate. */}}
{{- define "drawbridge.serves" -}}
{{- if or .Values.features.access .Values.features.inventory }}true{{ end }}
{{- end }}

{{/* Where components report to. */}}
{{- define "drawbridge.callbackUrl" -}}
{{- .Values.inventory.callbackUrl | default (printf "https://drawbridge-callbacks.%s.svc" .Release.Namespace) }}
{{- end }}

{{- define "drawbridge.callbackHost" -}}
{{- regexReplaceAll ":[0-9]+$" (get (urlParse (include "drawbridge.callbackUrl" .)) "host") "" }}
{{- end }}

{{/* What it takes to make and renew the serving certificate: everywhere ... */}}
{{- define "drawbridge.certificateRules" -}}
# Writes caBundle into its own webhook configurations; a list of several cannot be named.
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  verbs: [list, watch]
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  resourceNames:
    {{- range $path, $_ := .root.Files.Glob .files }}
    - drawbridge-{{ base $path | trimSuffix ".yaml" }}
    {{- end }}
  verbs: [patch]
{{- end }}

{{/* ... and at home. */}}
{{- define "drawbridge.certificateSecretRule" -}}
- apiGroups: ['']
  resources: [secrets]
  resourceNames: [{{ include "drawbridge.certificateSecret" . }}]
  verbs: [list, watch, patch]
{{- end }}

{{/* What it takes to sign how far the audit journals have got. Secrets cannot be created by name alone. */}}
{{- define "drawbridge.journalRules" -}}
- apiGroups: ['']
  resources: [secrets]
  verbs: [create]
- apiGroups: ['']
  resources: [secrets]
  resourceNames: [drawbridge-signing-keys]
  verbs: [get]
# It is applied, not created, and then the name counts.
- apiGroups: ['']
  resources: [configmaps]
  resourceNames: [drawbridge-audit-heads]
  verbs: [get, create, patch]
{{- end }}

{{/* "true" for an object, as lookup gives it, that this release has made. */}}
{{- define "drawbridge.isOurs" -}}
{{- $by := dig "metadata" "annotations" dict .object }}
{{- and (eq (dig "meta.helm.sh/release-name" "" $by) .release.Name) (eq (dig "meta.helm.sh/release-namespace" "" $by) .release.Namespace) }}
{{- end }}

{{/* The server's ServiceAccount as the subject of a binding. */}}
{{- define "drawbridge.subjects" -}}
- kind: ServiceAccount
  name: drawbridge
  namespace: {{ .Release.Namespace }}
{{- end }}

{{/* What is the same for every Pod of ours: the least that a process can have. */}}
{{- define "drawbridge.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "drawbridge.containerSecurity" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "drawbridge.scheduling" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{/* What the server makes itself never takes the place of what somebody else has made. */}}
{{- define "drawbridge.certificateSecret" -}}
{{- $default := ternary "drawbridge-own-certificate" "drawbridge-webhook-tls" (eq .Values.certificates.mode "own") }}
{{- .Values.certificates.secretName | default $default }}
{{- end }}
