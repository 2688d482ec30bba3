"""Builds what a release publishes into dist/ and checks it.

    python release_check.py [VERSION]

VERSION is what is about to be released; without it the project's own version is taken, and the
changelog may still say [Unreleased]. Runs in .venv-release (`make release-check`). Prints a line
for each check; one that cannot be made on this machine says why. Exit code 1 when one has failed.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
TOOLS = Path(sys.executable).parent
HOMEPAGE = os.environ.get("HOMEPAGE", "https://github.com/OWNER/status-reporter")

# Licences under which an image may be passed on without conditions on what is built with it.
PERMISSIVE = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0"),
    *("PSF-2.0", "Python-2.0", "Unlicense", "Zlib"),
}
"""MPL-2.0 (certifi): its files stay under it, unchanged."""
CLASSIFIERS = {
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: BSD License": "BSD-3-Clause",
    "License :: OSI Approved :: ISC License (ISCL)": "ISC",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
# Where the version of the image is written down for people to copy.
IMAGE_TAG = re.compile(r"(?:newTag: |status-reporter:)(\d+\.\d+\.\d+)")
OWN_CHARTS = ("deploy/chart/Chart.yaml", "deploy/library/Chart.yaml")
CHART = re.compile(r"^(?:appVersion|version): \"?(\d[\w.-]*)\"?$", re.MULTILINE)


class Failed(Exception):
    """A check has failed; the text says what is wrong, a line for each."""


class Skipped(Exception):
    """A check cannot be made on this machine; the text says why."""


def run(*command: str | Path, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> str:
    """Return what COMMAND prints; Failed with its output where it does not end with 0."""
    done = subprocess.run(  # noqa: S603
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **env} if env else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        name = Path(command[0]).name
        raise Failed(f"{name} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout


def digest(path: Path) -> str:
    """Return the SHA-256 of the file PATH in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def changelog_section(text: str, version: str) -> str | None:
    """Return what the changelog TEXT says about VERSION, or None where it has no such section."""
    found = re.search(
        rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE
    )
    return found[1].strip() if found else None


def other_versions(texts: Mapping[str, str], version: str) -> Iterator[str]:
    """Yield where the documents and manifests TEXTS, by path, name another version of ours."""
    for name, text in texts.items():
        for pattern in (IMAGE_TAG, *([CHART] if name in OWN_CHARTS else [])):
            for found in pattern.finditer(text):
                if found[1] != version:
                    line = text.count("\n", 0, found.start()) + 1
                    yield f"{name}:{line} says {found[1]}, not {version}"


def licence_problems(components: Iterable[dict[str, object]]) -> Iterator[str]:
    """Yield the components of a CycloneDX document whose licence is missing or not permissive."""
    for component in components:
        found = component.get("licenses") or []
        assert isinstance(found, list)
        said = [
            each.get("expression") or each["license"].get("id") or each["license"].get("name")
            for each in found
        ]
        known = [CLASSIFIERS.get(each, each) for each in said]
        if not known:
            yield f"{component['name']} names no licence"
        for each in known:
            alternatives = [set(one.split(" AND ")) for one in each.strip("()").split(" OR ")]
            if not any(one <= PERMISSIVE for one in alternatives):
                yield f"{component['name']} has the licence {each}"


def versions_agree(version: str, final: bool) -> str:
    """Check that code, changelog and manifests name VERSION; a FINAL one needs its own section."""
    own = own_version()
    problems = [f"reporter/__init__.py says {own}, not {version}"] if own != version else []
    names = ["README.md", "docs", "deploy", "examples"]
    listed = run("git", "-c", "safe.directory=*", "ls-files", "-z", "--", *names).split("\0")
    texts = {}
    for name in filter(None, listed):
        if (ROOT / name).suffix in (".md", ".yaml", ".yml", ".sh"):
            texts[name] = (ROOT / name).read_text(encoding="utf-8")
    problems += other_versions(texts, version)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    notes = changelog_section(changelog, version)
    if notes is None and final:
        problems.append(f"CHANGELOG.md has no section [{version}]")
    if problems:
        raise Failed("\n".join(problems))
    (DIST / "notes.md").write_text((notes or "Not released yet.") + "\n", encoding="utf-8")
    return version if notes else f"{version}; the changelog has no section for it yet"


def package(version: str, environment: Mapping[str, str]) -> str:
    """Build the sdist and the wheel twice; check their metadata and that both builds are equal."""
    with tempfile.TemporaryDirectory() as folder:
        built: list[dict[str, str]] = []
        for out in (DIST, Path(folder) / "again"):
            source = Path(folder) / f"source-{len(built)}"
            listed = run("git", "-c", "safe.directory=*", "ls-files", "-z").split("\0")
            for name in filter(None, listed):
                if (ROOT / name).is_file():
                    (source / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(ROOT / name, source / name)
            # The wheel is made from the sdist: what it lacks, people who build from it lack too.
            run(
                sys.executable,
                "-m",
                "build",
                "--no-isolation",
                "--outdir",
                out,
                source,
                env=environment,
            )
            files = [*out.glob("*.whl"), *out.glob("*.tar.gz")]
            built.append(
                {path.name: digest(path) for path in files if path.name.startswith("status_")}
            )
    run(TOOLS / "twine", "check", "--strict", *(DIST / name for name in built[0]))
    expected = {f"status_reporter-{version}.tar.gz", f"status_reporter-{version}-py3-none-any.whl"}
    if set(built[0]) != expected:
        raise Failed(f"built {sorted(built[0])}")
    # An sdist carries the times of its packing; what is in it decides.
    wheels = [
        name for name in expected if name.endswith(".whl") and built[0][name] != built[1][name]
    ]
    if wheels:
        raise Failed(f"two builds of {wheels[0]} differ")
    return "metadata right; two builds of the wheel are equal"


def single_file(version: str, environment: Mapping[str, str]) -> str:
    """Build status-ctl as one file, twice, and run it with nothing but a Python."""
    out = DIST / "status-ctl"
    shutil.rmtree(DIST / "site", ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        run(ROOT / "scripts" / "binary.sh", out, DIST / "site", env=environment)
        run(ROOT / "scripts" / "binary.sh", f"{folder}/again", env=environment)
        if digest(out) != digest(Path(folder) / "again"):
            raise Failed("two builds differ")
        bare = {"HOME": folder, "PATH": os.defpath, "PYTHONSAFEPATH": "1"}
        for interpreter in sorted(pythons()):
            done = subprocess.run(  # noqa: S603
                [interpreter, out, "--version"],
                env=bare,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode or version not in done.stdout:
                raise Failed(f"{interpreter} {out.name}: {done.stdout}{done.stderr}")
            if sys.platform == "linux":
                gather(interpreter, out, bare)
        count = len(pythons())
    return f"{out.stat().st_size / 2**20:.0f} MiB, two builds are equal, runs on {count} Pythons"


def gather(interpreter: str, program: Path, environ: Mapping[str, str]) -> None:
    """Gather this machine's facts with the one file, which starts modules of its own."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(  # noqa: S603
            [interpreter, program, "gather", "--out", folder],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not (Path(folder) / "host" / "facts.json").is_file():
            raise Failed(f"{program.name} gather: {done.stdout}{done.stderr}")


def pythons() -> set[str]:
    """Return the Pythons of this machine that the project runs on: paths."""
    found = {os.path.realpath(sys.executable)}
    own = ".".join(map(str, sys.version_info[:2]))
    other = run(ROOT / "scripts" / "python.sh", "other", own).strip()
    return found | ({other} if other else set())


def packages(version: str, environment: Mapping[str, str]) -> str:
    """List the Python packages of image and single file (CycloneDX), and check the licences."""
    out = DIST / "status-reporter.cdx.json"
    with tempfile.TemporaryDirectory() as folder:
        run(
            ROOT / ".venv" / "bin" / "uv",
            "venv",
            "--quiet",
            "--python",
            sys.executable,
            f"{folder}/all",
        )
        (site,) = Path(folder).glob("all/lib/python*/site-packages")
        shutil.copytree(DIST / "site", site, dirs_exist_ok=True)
        shutil.rmtree(DIST / "site")
        run(
            *(TOOLS / "cyclonedx-py", "environment", "--pyproject", ROOT / "pyproject.toml"),
            *("--sv", "1.6", "--output-reproducible", "-o", out, f"{folder}/all/bin/python"),
            env=environment,
        )
    document = json.loads(out.read_text(encoding="utf-8"))
    if "version" not in document["metadata"]["component"]:
        # The project's version is not in pyproject.toml; it comes from the code.
        document["metadata"]["component"]["version"] = version
        out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    components = document["components"]
    if problems := list(licence_problems(components)):
        raise Failed("\n".join(problems))
    return f"{len(components)} packages, all under permissive licences"


def image(environment: Mapping[str, str]) -> str:
    """Build the image twice; both must have the same digest."""
    if platform.system() != "Linux" or os.geteuid() != 0 or not shutil.which("buildah"):
        raise Skipped("building the image from Debian packages needs Linux, root and buildah")
    archive = DIST / "image.tar"
    said = run(
        *(
            ROOT / ".venv" / "bin" / "python",
            "-m",
            "tests.bed",
            "image",
            "--out",
            archive,
            "--twice",
        ),
        env=environment,
    )
    archive.unlink()
    return said.strip().splitlines()[-1]


def krew(version: str) -> str:
    """Pack the kubectl plugin and fill in its manifest."""
    system, machine = platform.system().lower(), platform.machine()
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    archive = DIST / f"kubectl-job_verdict-{system}-{machine}.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(DIST / "status-ctl", "kubectl-job_verdict")
        tar.add(ROOT / "LICENSE", "LICENSE")
    text = (ROOT / "deploy" / "krew" / "job-verdict.yaml").read_text(encoding="utf-8")
    values = {"version": version, "homepage": HOMEPAGE, "os": system, "arch": machine}
    values |= {"archive": archive.name, "sha256": digest(archive)}
    for name, value in values.items():
        text = text.replace(f"<{name}>", value)
    if left := re.findall(r"<\w+>", text):
        raise Failed(f"the manifest has no value for {left}")
    (DIST / "job-verdict.yaml").write_text(text, encoding="utf-8")
    return f"{archive.name} and job-verdict.yaml"


def charts() -> str:
    """Pack the Helm charts."""
    run(sys.executable, ROOT / "scripts" / "pack_chart.py", DIST)
    return ", ".join(sorted(each.name for each in DIST.glob("status-reporter-*.tgz")))


def workflow() -> str:
    """Lint the workflow that publishes, and the shell in it."""
    run(TOOLS / "zizmor", "--offline", "--quiet", ".github/workflows", "examples/into/github.yml")
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    (uploaded,) = re.findall(r"twine upload .* dist/(\S+)$", text, re.MULTILINE)
    run(TOOLS / "twine", "check", "--strict", *DIST.glob(uploaded))
    blocks = re.findall(r"^( +)run: \|\n((?:\1 +.*\n)+)", text, re.MULTILINE)
    for _, block in blocks:
        run("bash", "-n", "-c", block)
    return f"no finding; {len(blocks)} scripts parse"


def own_version() -> str:
    """Return the version that the code says."""
    code = (ROOT / "reporter" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', code, re.MULTILINE)
    assert found is not None
    return found[1]


def main(arguments: list[str]) -> int:
    """Make every check, print a line for each; return the exit code."""
    version = arguments[0] if arguments else own_version()
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    stamp = run("git", "-c", "safe.directory=*", "log", "-1", "--format=%ct").strip()
    environment = {"SOURCE_DATE_EPOCH": stamp}
    checks: list[tuple[str, Callable[[], str]]] = [
        ("versions", lambda: versions_agree(version, bool(arguments))),
        ("package", lambda: package(version, environment)),
        ("status-ctl as one file", lambda: single_file(version, environment)),
        ("packages and licences", lambda: packages(version, environment)),
        ("kubectl plugin", lambda: krew(version)),
        ("charts", charts),
        ("workflow", workflow),
        ("image", lambda: image(environment)),
    ]
    failed = False
    for name, check in checks:
        try:
            print(f"ok       {name}: {check()}", flush=True)
        except Skipped as reason:
            print(f"skipped  {name}: {reason}", flush=True)
        except (Failed, OSError) as error:
            failed = True
            print(f"failed   {name}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
