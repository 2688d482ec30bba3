{{/*
What `status-ctl inject --with-rbac` adds to a Job, for the templates of a chart. See examples/into/chart.
Beside it the container that writes the result mounts the volume `status-reporter-results` at /results.
*/}}

{{/*
The reporter as a native sidecar, the first of `initContainers`; needs Kubernetes 1.29. Of a dict:
  image  the image of status-reporter
  env    its settings, for example ADAPTER_CONTAINER_NAME
*/}}
{{- define "status-reporter.sidecar" -}}
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
      value: {{ $value | toString | quote }}
    {{- end }}
  resources:
    requests:
      cpu: 50m
      memory: 48Mi
    limits:
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
Role and RoleBinding, two documents. Of a dict:
  account  the ServiceAccount of the Job
  hook     helm.sh/hook of the Job, if it is a hook
  weight   a lower helm.sh/hook-weight than the Job's; -1 unless it is given
*/}}
{{- define "status-reporter.rbac" -}}
{{- $account := required "status-reporter.rbac: account is missing" .account -}}
{{- $metadata := dict "name" (printf "status-reporter-%s" $account) "labels" (dict "app.kubernetes.io/name" "status-reporter") -}}
{{- with .hook -}}
{{- $weight := default "-1" $.weight | toString -}}
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
