{{- define "drawbridge.labels" -}}
app.kubernetes.io/name: drawbridge
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
Each feature has a Deployment and a ServiceAccount of its own. The templates below take a dict of the root and the feature. Access has the
names and labels without a suffix, because the selector of a Deployment cannot change and policies name its ServiceAccount.
*/}}
{{- define "drawbridge.name" -}}
drawbridge{{ if ne .feature "access" }}-{{ .feature }}{{ end }}
{{- end }}

{{- define "drawbridge.component" -}}
{{ ternary "server" .feature (eq .feature "access") }}
{{- end }}

{{- define "drawbridge.selector" -}}
app.kubernetes.io/name: drawbridge
app.kubernetes.io/component: {{ include "drawbridge.component" . }}
{{- end }}

{{/* Replicas of the feature. */}}
{{- define "drawbridge.replicas" -}}
{{- $own := ternary .root.Values.gateway.replicas 0 (eq .feature "gateway") }}
{{- $own | default .root.Values.replicas | int }}
{{- end }}

{{/* The Service by which the API server calls the feature; with cert-manager also its Certificate. */}}
{{- define "drawbridge.calledService" -}}
{{ include "drawbridge.name" . }}{{ if ne .feature "gateway" }}-webhook{{ end }}
{{- end }}

{{/* The Secret of the feature's serving certificate. The server's own Secret has another name than one that an administrator creates. */}}
{{- define "drawbridge.certificateSecret" -}}
{{- $values := .root.Values }}
{{- $given := $values.certificates.secretName }}
{{- if eq .feature "inventory" }}
{{- $given = $values.inventory.certificates.secretName | default (ternary "" $given $values.features.access) }}
{{- end }}
{{- if eq .feature "gateway" }}
{{- $given = $values.gateway.certificates.secretName }}
{{- end }}
{{- $own := printf "%s-own-certificate" (include "drawbridge.name" .) }}
{{- $given | default (ternary $own (printf "%s-tls" (include "drawbridge.calledService" .)) (eq $values.certificates.mode "own")) }}
{{- end }}

{{/* The feature's ServiceAccount as the subject of a binding. */}}
{{- define "drawbridge.subjects" -}}
- kind: ServiceAccount
  name: {{ include "drawbridge.name" . }}
  namespace: {{ .root.Release.Namespace }}
{{- end }}

{{- define "drawbridge.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* The enabled features, separated by commas. */}}
{{- define "drawbridge.features" -}}
{{- $on := list }}
{{- range list "access" "binding" "inventory" "gateway" "notify" }}
{{- if index $.Values.features . }}{{ $on = append $on . }}{{ end }}
{{- end }}
{{- join "," $on }}
{{- end }}

{{/* The enabled features that the API server calls; each has a certificate. */}}
{{- define "drawbridge.serving" -}}
{{- without (include "drawbridge.features" . | splitList ",") "binding" "notify" | join "," }}
{{- end }}

{{/* The URL that components report to. */}}
{{- define "drawbridge.callbackUrl" -}}
{{- .Values.inventory.callbackUrl | default (printf "https://drawbridge-callbacks.%s.svc" .Release.Namespace) }}
{{- end }}

{{- define "drawbridge.callbackHost" -}}
{{- regexReplaceAll ":[0-9]+$" (get (urlParse (include "drawbridge.callbackUrl" .)) "host") "" }}
{{- end }}

{{/* Permissions to create and renew the serving certificate of a feature with webhooks: in the cluster ... */}}
{{- define "drawbridge.certificateRules" -}}
# Writes caBundle into the webhook configurations of its feature; RBAC cannot limit list to names.
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  verbs: [list, watch]
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  resourceNames:
    {{- range $path, $_ := .root.Files.Glob (printf "files/%s/*.yaml" (ternary "webhooks" "inventory-webhooks" (eq .feature "access"))) }}
    - drawbridge-{{ base $path | trimSuffix ".yaml" }}
    {{- end }}
  verbs: [patch]
{{- end }}

{{/* ... and in the namespace of the release. */}}
{{- define "drawbridge.certificateSecretRule" -}}
- apiGroups: ['']
  resources: [secrets]
  resourceNames: [{{ include "drawbridge.certificateSecret" . }}]
  verbs: [list, watch, patch]
# The Lease of the replica that writes the Secret.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "drawbridge.certificateSecret" . }}]
  verbs: [get, list, watch, update]
{{- end }}

{{/* Permissions to sign the heads of a feature's audit journal. */}}
{{- define "drawbridge.keyRules" -}}
{{- $name := include "drawbridge.name" . }}
{{- $keys := list (printf "%s-audit-keys" $name) }}
# RBAC cannot limit create to a name.
- apiGroups: ['']
  resources: [secrets]
  verbs: [create]
- apiGroups: ['']
  resources: [secrets]
  resourceNames: {{ toYaml $keys | nindent 4 }}
  verbs: [get]
# The public keys, and the heads. The server applies them, and RBAC can limit apply to a name.
- apiGroups: ['']
  resources: [configmaps]
  resourceNames: {{ append $keys (printf "%s-audit-heads" $name) | toYaml | nindent 4 }}
  verbs: [get, create, patch]
{{- end }}

{{/* ServiceAccount of a feature. */}}
{{- define "drawbridge.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "drawbridge.name" . }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{ include "drawbridge.labels" .root | nindent 4 }}
  {{- with ternary .root.Values.gateway.serviceAccountAnnotations dict (eq .feature "gateway") }}
  annotations: {{ toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}

{{/* "true" if this release created the object, which comes from lookup. */}}
{{- define "drawbridge.isOurs" -}}
{{- $by := dig "metadata" "annotations" dict .object }}
{{- and (eq (dig "meta.helm.sh/release-name" "" $by) .release.Name) (eq (dig "meta.helm.sh/release-namespace" "" $by) .release.Namespace) }}
{{- end }}

{{/* The security context of every Pod of the chart: the least privilege. */}}
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

{{/* Peers of a NetworkPolicy, from a list of CIDRs. */}}
{{- define "drawbridge.ipBlocks" -}}
{{- range . }}
- ipBlock: {cidr: {{ . | quote }}}
{{- end }}
{{- end }}

{{/* A rule for TCP ports, limited to the CIDRs if there are any. */}}
{{- define "drawbridge.egress" -}}
- ports:
    {{- range .ports }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  {{- with .cidrs }}
  to: {{ include "drawbridge.ipBlocks" . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* After a remedy that is in vain in other namespaces. */}}
{{- define "drawbridge.served" -}}
{{ if .Values.namespaces }}, and only in a namespace that the chart value namespaces lists; ask an administrator{{ end }}
{{- end }}
