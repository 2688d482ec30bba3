{{/*
The container, volumes and rights that `status-ctl inject --with-rbac` adds, for the templates of a chart. See
examples/into/chart. The rest is the Job's: the label status-reporter.io/inject: native, and the volume
`status-reporter-results`, which the container that writes the result mounts at /results.
*/}}

{{/*
The reporter as a native sidecar, the first of `initContainers`; needs Kubernetes 1.29. Of a dict:
  root      the chart's own `$`
  image     the image of status-reporter
  env       its settings: ADAPTER_CONTAINER_NAME, and MAX_WAIT_TIME_SECONDS, at least 10 s less than the
            Job's activeDeadlineSeconds
  cpuLimit  a limit on CPU, if there must be one; requests are the limits then
*/}}
{{- define "status-reporter.sidecar" -}}
{{- $version := .root.Capabilities.KubeVersion.Version -}}
{{- if semverCompare "<1.29.0-0" $version -}}
{{- fail (printf "status-reporter.sidecar needs Kubernetes 1.29 or newer, this is %s" $version) -}}
{{- end -}}
- name: status-reporter
  image: {{ required "status-reporter.sidecar: image is missing" .image | quote }}
  restartPolicy: Always
  env:
    - name: REPORTER_FORM
      value: native
    - name: JOB_NAME
      valueFrom:
        fieldRef:
          fieldPath: metadata.labels['job-name']
    - name: JOB_NAMESPACE
      valueFrom:
        fieldRef:
          fieldPath: metadata.namespace
    - name: POD_NAME
      valueFrom:
        fieldRef:
          fieldPath: metadata.name
    {{- range $name, $value := .env }}
    - name: {{ $name }}
      value: {{ ternary $value (toJson $value) (kindIs "string" $value) | quote }}
    {{- end }}
  resources:
    requests:
      cpu: {{ .cpuLimit | default "50m" }}
      memory: {{ ternary "64Mi" "48Mi" (not (empty .cpuLimit)) }}
    limits:
      {{- with .cpuLimit }}
      cpu: {{ . }}
      {{- end }}
      memory: 64Mi
  terminationMessagePolicy: FallbackToLogsOnError
  securityContext:
    allowPrivilegeEscalation: false
    capabilities:
      drop:
        - ALL
    readOnlyRootFilesystem: true
    runAsNonRoot: true
    seccompProfile:
      type: RuntimeDefault
  volumeMounts:
    - name: status-reporter-results
      mountPath: /results
      readOnly: true
    - name: status-reporter-token
      mountPath: /var/run/secrets/kubernetes.io/serviceaccount
      readOnly: true
{{- end -}}

{{/* The volumes of the Pod: results, and a token that only the reporter mounts. */}}
{{- define "status-reporter.volumes" -}}
- name: status-reporter-results
  emptyDir: {}
- name: status-reporter-token
  projected:
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3600
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
      - downwardAPI:
          items:
            - path: namespace
              fieldRef:
                fieldPath: metadata.namespace
{{- end -}}

{{/*
Role and RoleBinding, two documents, once for each account and once for its hooks. Of a dict:
  account  the ServiceAccount of the Job; for a hook one that nothing else uses
  hook     helm.sh/hook of the Job, if it is a hook
  weight   a lower helm.sh/hook-weight than the Job's; -1 unless it is given
*/}}
{{- define "status-reporter.rbac" -}}
{{- $account := required "status-reporter.rbac: account is missing" .account -}}
{{- $name := printf "status-reporter-%s%s" $account (ternary "-hook" "" (not (empty .hook))) -}}
{{- $metadata := dict "name" $name "labels" (dict "app.kubernetes.io/name" "status-reporter") -}}
{{- with .hook -}}
{{- $weight := ternary $.weight -1 (hasKey $ "weight") | toString -}}
{{- $_ := set $metadata "annotations" (dict "helm.sh/hook" . "helm.sh/hook-weight" $weight) -}}
{{- end -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  {{- toYaml $metadata | nindent 2 }}
rules:
  - apiGroups:
      - batch
    resources:
      - jobs/status
    verbs:
      - get
      - patch
  - apiGroups:
      - ""
    resources:
      - pods
    verbs:
      - get
      - watch
  - apiGroups:
      - events.k8s.io
    resources:
      - events
    verbs:
      - create
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  {{- toYaml $metadata | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $metadata.name }}
subjects:
  - kind: ServiceAccount
    name: {{ $account }}
{{- end -}}
