"""Definitions of plugins as people write them, by situation."""

from __future__ import annotations

SYSTEMD_LOGS = """
sonobuoy-config:
  driver: DaemonSet
  plugin-name: systemd-logs
  result-format: raw
spec:
  command: [/bin/sh, -c, /get_systemd_logs.sh; while true; do sleep 3600; done]
  env:
  - name: CHROOT_DIR
    value: /node
  - name: RESULTS_DIR
    value: /tmp/sonobuoy/results
  - name: NODE_NAME
    valueFrom:
      fieldRef:
        fieldPath: spec.nodeName
  image: sonobuoy/systemd-logs:v0.4
  imagePullPolicy: IfNotPresent
  name: systemd-logs
  securityContext:
    privileged: true
  volumeMounts:
  - mountPath: /tmp/sonobuoy/results
    name: results
    readOnly: false
  - mountPath: /node
    name: root
    readOnly: false
"""
KUBE_BENCH = """
podSpec:
  dnsPolicy: ClusterFirstWithHostNet
  hostIPC: true
  hostNetwork: true
  hostPID: true
  serviceAccountName: sonobuoy-serviceaccount
  tolerations:
  - effect: NoSchedule
    key: node-role.kubernetes.io/master
    operator: Exists
  - key: CriticalAddonsOnly
    operator: Exists
  volumes:
  - hostPath: {path: /var/lib/kubelet}
    name: var-lib-kubelet
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - key: node-role.kubernetes.io/control-plane
            operator: DoesNotExist
sonobuoy-config:
  driver: DaemonSet
  plugin-name: kube-bench-node
  result-format: junit
spec:
  command: [/bin/sh]
  args: [-c, /run-kube-bench.sh; while true; do echo Sleeping; sleep 3600; done]
  env:
  - name: KUBERNETES_VERSION
    value: $(SONOBUOY_K8S_VERSION)
  image: sonobuoy/kube-bench:$SONOBUOY_K8S_VERSION
  name: plugin
  volumeMounts:
  - {mountPath: /tmp/sonobuoy/results, name: results}
  - {mountPath: /var/lib/kubelet, name: var-lib-kubelet}
"""
E2E = """
sonobuoy-config:
  driver: Job
  plugin-name: e2e
  result-format: junit
config-map:
  settings.yaml: "a: 1"
  sub/list.txt: "x"
spec:
  command: [/run_e2e.sh]
  image: registry.k8s.io/conformance:$SONOBUOY_K8S_VERSION
  name: e2e
  volumeMounts:
  - {mountPath: /tmp/sonobuoy/results, name: results, readOnly: false}
  - {mountPath: /var/lib/sonobuoy, name: output-volume}
extra-volumes:
- name: output-volume
  hostPath: {path: /var/lib/sonobuoy}
"""


def ours(name: str, contract: str, pod: str, *, driver: str = "Job", **spec: str) -> str:
    """Return a definition in our shape; `pod` is its template, in YAML."""
    fields = "".join(f"\n  {field}: {value}" for field, value in spec.items())
    return f"""\
apiVersion: status-reporter.io/v1
kind: Plugin
metadata: {{name: {name}}}
spec:
  driver: {driver}
  contract: {contract}{fields}
  template: {pod}
"""


RESTRICTED = (
    "{allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, runAsNonRoot: true,"
    " seccompProfile: {type: RuntimeDefault}, runAsUser: 1000}"
)
_PLAIN = "{spec: {containers: [{name: adapter, image: busybox}]}}"
YAML = {
    "adapter as in the documentation": ours(
        "quota-check",
        "result-file",
        "{spec: {containers: [{name: adapter, image: busybox,"
        " volumeMounts: [{name: results, mountPath: /results}]}]}}",
        timeoutSeconds="300",
    ),
    "adapter that mounts nothing": ours("bare", "result-file", _PLAIN),
    "restricted adapter": ours(
        "restricted",
        "result-file",
        "{spec: {containers: [{name: adapter, image: busybox,"
        f" securityContext: {RESTRICTED}}}]}}}}",
    ),
    "adapter on each node": ours("per-node", "result-file", _PLAIN, driver="Node"),
    "adapter on the node's network": ours(
        "network",
        "result-file",
        "{spec: {hostNetwork: true, terminationGracePeriodSeconds: 300,"
        " containers: [{name: adapter, image: busybox}]}}",
        driver="Node",
        heartbeats="false",
        cleanup="never",
    ),
    "adapter with everything of its own": ours(
        "own",
        "result-file",
        """
    metadata:
      labels: {team: storage, app.kubernetes.io/part-of: theirs}
      annotations:
        note: kept
        sidecar.istio.io/inject: "true"
        kubectl.kubernetes.io/default-container: main
    spec:
      serviceAccountName: theirs
      restartPolicy: Never
      imagePullSecrets: [{name: mine}, {name: pull}]
      tolerations: [{key: special, operator: Exists}]
      dnsPolicy: None
      dnsConfig: {nameservers: [192.0.2.1]}
      hostNetwork: true
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {team: storage}}}
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - {weight: 1, preference: {matchExpressions: [{key: a, operator: Exists}]}}
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions: [{key: zone, operator: In, values: [a, b]}]
            - {}
            - matchFields: [{key: metadata.name, operator: NotIn, values: [node9]}]
      securityContext: {runAsUser: 0, fsGroup: 2000}
      initContainers:
      - {name: prepare, image: "busybox:$SONOBUOY_K8S_VERSION"}
      - {name: proxy, image: busybox, restartPolicy: Always}
      containers:
      - {name: helper, image: busybox}
      - name: main
        image: busybox
        env: [{name: HOME, value: /}, {name: EXTRA, value: old}]
        volumeMounts: [{name: scratch, mountPath: /results/, subPath: out}]
        securityContext: {runAsUser: 1000, runAsGroup: 1001}
      volumes: [{name: scratch, emptyDir: {medium: Memory}}]
""",
        driver="Node",
    ),
    "Sonobuoy's systemd-logs": SYSTEMD_LOGS,
    "Sonobuoy's kube-bench": KUBE_BENCH,
    "Sonobuoy's e2e": E2E,
    "worker with results in a place of the plugin's": ours(
        "elsewhere",
        "done-file",
        "{spec: {containers: [{name: plugin, image: busybox,"
        " volumeMounts: [{name: results, mountPath: /out}]}]}}",
        config="{a.conf: x}",
        heartbeats="false",
    ),
    "worker beside a plugin that is root": ours(
        "root",
        "done-file",
        "{spec: {containers: [{name: plugin, image: busybox, securityContext: {runAsUser: 0}}]}}",
    ),
    "program that uploads by itself": ours("upload", "link", _PLAIN),
    "program that uploads by itself, on each node": ours(
        "upload-each",
        "link",
        "{spec: {containers: [{name: agent, image: busybox,"
        " env: [{name: AGGREGATOR_URL, value: theirs}, {name: MINE, value: $(NODE_NAME)}]}]}}",
        driver="Node",
    ),
}
