"""Small static images without a container engine: an OCI layout made by Python.

One image serves as the Pods' sandbox ("pause") and as the adapter in tests: busybox. The
product's own image is built in `product_image.py`.
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

BUSYBOX = Path("/bin/busybox")
BUSYBOX_IMAGE = "localhost/busybox:bed"
PAUSE_IMAGE = "localhost/pause:bed"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def write_busybox_image(out: Path) -> None:
    """An image with a shell and all applets of Debian's static busybox (`sh -c ...`)."""
    _write_image(out, _busybox_layer(), {"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"]})


def write_pause_image(out: Path) -> None:
    """The image of the Pods' sandboxes: sleeps until the runtime kills it."""
    _write_image(out, _busybox_layer(), {"Entrypoint": ["/bin/busybox", "sleep", "2147483647"]})


def write_program_image(out: Path, program: Path) -> None:
    """The image of one static program, beside busybox; it lies in the root folder."""
    layer = io.BytesIO(_busybox_layer())
    with tarfile.open(fileobj=layer, mode="a") as tar, program.open("rb") as file:
        entry = tarfile.TarInfo(program.name)
        entry.size, entry.mode = program.stat().st_size, 0o755
        tar.addfile(entry, file)
    _write_image(out, layer.getvalue(), {"Cmd": [f"/{program.name}"], "Env": ["PATH=/bin"]})


def write_named(archive: Path, name: str, out: Path) -> None:
    """Copy an OCI archive with one image so that containerd takes it in as `name`.

    `ctr image import --index-name` would be the shorter way, but where the archive carries a name
    of its own it makes two records of one name, and the first one's index may be collected before
    it is unpacked.
    """
    with tarfile.open(archive) as source, tarfile.open(out, "w") as target:
        for entry in source:
            file = source.extractfile(entry) if entry.isfile() else None
            if file is not None and entry.name == "index.json":
                index = json.load(file)
                index["manifests"][0]["annotations"] = {"io.containerd.image.name": name}
                _add(target, entry.name, json.dumps(index).encode())
            else:
                target.addfile(entry, file)


def image_id(archive: Path) -> str:
    """The id a container runtime gives the image in an OCI archive: its config's digest."""
    with tarfile.open(archive) as tar:
        return str(_manifest(tar)["config"]["digest"])


def layer_sizes(archive: Path) -> dict[str, int]:
    """Compressed bytes of each layer of an OCI archive by its diff id (digest uncompressed)."""
    with tarfile.open(archive) as tar:
        manifest = _manifest(tar)
        diff_ids = json.loads(_blob(tar, manifest["config"]["digest"]))["rootfs"]["diff_ids"]
        return dict(zip(diff_ids, (layer["size"] for layer in manifest["layers"]), strict=True))


def manifest_digest(archive: Path) -> str:
    """The digest by which a registry would know the image of an OCI archive."""
    with tarfile.open(archive) as tar:
        index = tar.extractfile("index.json")
        assert index is not None
        return str(json.loads(index.read())["manifests"][0]["digest"])


def _manifest(tar: tarfile.TarFile) -> Any:
    index = tar.extractfile("index.json")
    assert index is not None
    return json.loads(_blob(tar, json.load(index)["manifests"][0]["digest"]))


def _blob(tar: tarfile.TarFile, digest: str) -> bytes:
    file = tar.extractfile(f"blobs/{digest.replace(':', '/')}")
    assert file is not None
    return file.read()


def _busybox_layer() -> bytes:
    layer = io.BytesIO()
    applets = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True)
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for folder, mode in (("bin", 0o755), ("tmp", 0o1777), ("proc", 0o755), ("sys", 0o755)):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        program = tarfile.TarInfo("bin/busybox")
        program.size, program.mode = BUSYBOX.stat().st_size, 0o755
        with BUSYBOX.open("rb") as file:
            tar.addfile(program, file)
        for applet in sorted({line.rpartition("/")[2] for line in applets.stdout.split()}):
            if applet != "busybox":
                link = tarfile.TarInfo(f"bin/{applet}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(link)
    return layer.getvalue()


def _write_image(out: Path, layer: bytes, settings: dict[str, Any]) -> None:
    machine = subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True)
    config = {
        "architecture": ARCHITECTURES[machine.stdout.strip()],
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
    }
    kind = "application/vnd.oci.image"
    packed_config = json.dumps(config).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{kind}.manifest.v1+json",
        "config": _described(f"{kind}.config.v1+json", packed_config),
        "layers": [_described(f"{kind}.layer.v1.tar", layer)],
    }
    packed_manifest = json.dumps(manifest).encode()
    index = {
        "schemaVersion": 2,
        "manifests": [_described(f"{kind}.manifest.v1+json", packed_manifest)],
    }
    files = {
        f"blobs/{_digest(blob).replace(':', '/')}": blob
        for blob in (layer, packed_config, packed_manifest)
    }
    files["oci-layout"] = b'{"imageLayoutVersion":"1.0.0"}'
    files["index.json"] = json.dumps(index).encode()
    with tarfile.open(out, "w") as tar:
        for name, content in files.items():
            _add(tar, name, content)


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def _described(kind: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"
