# One image for all programs of the repository: status-reporter is the entry point; it and the others
# are commands in the PATH, made of the launchers in /app/cmd. Builds with buildah, podman and docker; `make image` picks one.
#
# Both bases are arguments and must have the same minor version of Python (the build checks it).
# The runtime base needs python3 in its PATH and nothing else: no shell, no package manager.
# They are named by tag: a digest belongs here once the registry that you pull from has given one
# (`skopeo inspect docker://IMAGE`), for instance RUNTIME_IMAGE=...:nonroot@sha256:...
ARG BUILD_IMAGE=docker.io/library/python:3.13-slim-trixie
ARG RUNTIME_IMAGE=gcr.io/distroless/python3-debian13:nonroot


FROM ${BUILD_IMAGE} AS build

WORKDIR /build
# A directory `wheels` beside this file is optional. Where there is one, packages come from it alone
# and the build needs no network; the hashes are checked in either case.
COPY requirements/image.txt wheels* /build/packages/
RUN set -eu; \
    python3 -m venv /build/venv; \
    if ls /build/packages/*.whl >/dev/null 2>&1; then offline="--no-index --find-links /build/packages"; fi; \
    /build/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir \
        --require-hashes --only-binary :all: --no-compile ${offline:-} \
        --target /app/site --requirement /build/packages/image.txt
COPY scripts/image_prune.py /build/
RUN python3 /build/image_prune.py /app/site
COPY LICENSE scripts/image_bytecode.py /app/
COPY cmd /app/cmd
COPY reporter /app/reporter
# Readable for any user: a Pod may set runAsUser to the adapter's. `/sonobuoy` is where a Sonobuoy
# run calls its worker, and `sonobuoy retrieve` the command that packs the results. The agent runs the
# programs in `/gatherers.d` on a node, so an image made from this one can add to them. Those in
# `/log-gatherers.d` run as root.
RUN set -eu; \
    chmod -R u=rwX,go=rX /app; \
    mkdir -p /build/root/usr/local/bin; \
    ln -s app/cmd/sonobuoy.py /build/root/sonobuoy; \
    for name in status-reporter status-aggregator status-agent status-ctl; do \
        ln -s "/app/cmd/$name.py" "/build/root/usr/local/bin/$name"; \
    done; \
    mkdir /build/root/gatherers.d; \
    ln -s /app/cmd/gather-host.py /build/root/gatherers.d/10-host; \
    ln -s /app/cmd/gather-logs.py /build/root/gatherers.d/20-logs; \
    mkdir /build/root/log-gatherers.d; \
    ln -s /app/cmd/gather-logs.py /build/root/log-gatherers.d/10-logs; \
    ln -s /app/cmd/gather-log-analysis.py /build/root/log-gatherers.d/20-log-analysis


FROM ${RUNTIME_IMAGE}

COPY --from=build /app /app
COPY --from=build /build/root/ /
# PYTHONSAFEPATH keeps the directories of scripts out of the module path: /app/cmd must never replace
# the standard module `cmd`. Bytecode is complete and the root file system is read-only.
ENV PYTHONPATH=/app:/app/site \
    PYTHONSAFEPATH=1 \
    PYTHONNOUSERSITE=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

# As root only to write bytecode beside the standard library, in the exec form: there is no shell.
USER 0:0
RUN ["python3", "/app/image_bytecode.py", "/app"]

# By number, so that the kubelet can check runAsNonRoot without reading the image's user list.
USER 65532:65532
WORKDIR /
EXPOSE 9464
ENTRYPOINT ["python3", "/app/cmd/status-reporter.py"]

# Last, so that a new revision leaves the layers above as they are.
ARG VERSION=0.0.0
ARG REVISION=unknown
ARG SOURCE=
LABEL org.opencontainers.image.title="status-reporter" \
      org.opencontainers.image.description="Writes what became of a Kubernetes Job's container as one condition on the Job" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}"
