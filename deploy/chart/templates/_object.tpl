{{/*
One object of a file below files/, with what the release decides: `text`, `namespace`, `labels`, and `root`.
*/}}
{{- define "status-reporter.object" -}}
{{- $root := .root -}}
{{- $namespace := .namespace -}}
{{- $object := fromYaml .text -}}
{{- if not $object.kind }}{{ fail (printf "a file of the chart is no object: %v" $object) }}{{ end -}}
{{- $labels := dict
      "app.kubernetes.io/managed-by" $root.Release.Service
      "app.kubernetes.io/version" $root.Chart.AppVersion
      "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version) -}}
{{- $_ := set $object.metadata "labels" (mergeOverwrite (default dict $object.metadata.labels) $labels (default dict .labels)) -}}
{{- if not (hasPrefix "Cluster" $object.kind) -}}
{{- $_ := set $object.metadata "namespace" $namespace -}}
{{- end -}}
{{- range $object.subjects -}}
{{- $_ := set . "namespace" $namespace -}}
{{- end -}}
{{- if has $object.kind (list "Deployment" "StatefulSet") -}}
{{- $pod := $object.spec.template.spec -}}
{{- range $pod.containers -}}
{{- if eq .image "status-reporter" -}}
{{- $image := $root.Values.image -}}
{{- $version := printf ":%s" (default $root.Chart.AppVersion $image.tag) -}}
{{- with $image.digest -}}{{- $version = printf "@%s" . -}}{{- end -}}
{{- $_ := set . "image" (print $image.repository $version) -}}
{{- $secrets := list -}}
{{- range $root.Values.image.pullSecrets -}}{{- $secrets = append $secrets (dict "name" .) -}}{{- end -}}
{{- if $secrets -}}{{- $_ := set $pod "imagePullSecrets" $secrets -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $claim := (default dict $object.spec).volumeClaimTemplates -}}
{{- $storage := $root.Values.aggregator.storage -}}
{{- $_ := set $claim.spec.resources.requests "storage" $storage.size -}}
{{- with $storage.className -}}{{- $_ := set $claim.spec "storageClassName" . -}}{{- end -}}
{{- end -}}
---
{{ toYaml $object }}
{{ end -}}

{{/* Every object of the files that match `glob`. */}}
{{- define "status-reporter.objects" -}}
{{- $given := . -}}
{{- $files := .root.Files.Glob .glob -}}
{{- if not $files }}{{ fail "the chart is not packed: install what `make chart` makes of it" }}{{ end -}}
{{- range $path, $_ := $files -}}
{{- range $text := splitList "\n---\n" ($given.root.Files.Get $path) -}}
{{- include "status-reporter.object" (merge (dict "text" $text) $given) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Not empty where nothing can be created in a `namespace`. Without a cluster (`helm template`) nobody knows: every
lookup is empty then, also that of a list. The release's own may be created after the templates are read.
Whoever may not look something up has no release: hence the value.
*/}}
{{- define "status-reporter.missing" -}}
{{- if and .root.Values.skipMissingNamespaces (ne .namespace .root.Release.Namespace) -}}
{{- if lookup "v1" "ServiceAccount" .root.Release.Namespace "" -}}
{{- if ne (dig "status" "phase" "" (lookup "v1" "Namespace" "" .namespace)) "Active" -}}missing{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
