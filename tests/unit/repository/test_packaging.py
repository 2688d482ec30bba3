"""What is packed and how: the wheel, the locks, the layers, the image's tree."""

import marshal
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from configparser import ConfigParser
from email.message import Message
from email.parser import HeaderParser
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ROOT / "scripts"


def script(name: str):
    """Load scripts/NAME.py as a module of its own."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up by name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


check_locks = script("check_locks")
check_docs = script("check_docs")
image_prune = script("image_prune")
image_bytecode = script("image_bytecode")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Iterator[zipfile.ZipFile]:
    """Build the wheel from a copy, so that no build directory is left in the tree."""
    out = tmp_path_factory.mktemp("wheel")
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    for path in (ROOT / "reporter").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            copy = source / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out]
    done = subprocess.run([*command, source], capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout + done.stderr
    (built,) = out.glob("*.whl")
    with zipfile.ZipFile(built) as opened:
        yield opened


class TestWheel:
    """The built distribution."""

    @pytest.fixture
    def metadata(self, wheel: zipfile.ZipFile) -> Message:
        """Read the wheel's METADATA."""
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(wheel.read(name).decode())

    def test_base_needs_urllib3_only(self, metadata):
        """Who takes the client library alone gets one dependency."""
        requirements = map(Requirement, metadata.get_all("Requires-Dist"))
        base = {needed.name for needed in requirements if needed.marker is None}

        assert {"urllib3"} == base

    def test_extras(self, metadata):
        """Each program has its packages in an extra, and there is one for everything."""
        assert {"sidecar", "aggregator", "all"} == set(metadata.get_all("Provides-Extra"))

    def test_holds_every_file_of_the_package_and_nothing_else(self, wheel):
        """Type marker and schemas are in; tests, launchers and caches are not."""
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
        there = {
            path.relative_to(ROOT).as_posix()
            for path in (ROOT / "reporter").rglob("*")
            if "__pycache__" not in path.parts and path.is_file()
        }

        assert there == packed
        assert "reporter/py.typed" in packed

    def test_commands(self, wheel):
        """What documents and advice name is installed, and each name leads to a function."""
        (name,) = (name for name in wheel.namelist() if name.endswith("/entry_points.txt"))
        written = ConfigParser(delimiters=["="])
        written.read_string(wheel.read(name).decode())
        commands = dict(written["console_scripts"])

        ours = {"status-agent", "status-aggregator", "status-ctl", "status-reporter"}
        assert {"kubectl-job_verdict", "kubectl_complete-job_verdict", *ours} == set(commands)
        for target in commands.values():
            assert callable(EntryPoint("", target, "console_scripts").load())

    def test_licence_is_in_the_wheel(self, wheel):
        """Apache-2.0 wants its text to go along."""
        assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())


class TestPrograms:
    """How the programs start."""

    @pytest.mark.parametrize("package", ["sidecar", "aggregator"])
    def test_the_signal_handler_stands_before_everything_heavy(self, package):
        """Process 1 never hears of a SIGTERM without one, and the imports take half a second."""
        code = (
            "import sys, signal\n"
            f"from reporter.{package}.__main__ import main\n"
            "class Finder:\n"
            "    def find_spec(name, path=None, target=None):\n"
            f"        if name == 'reporter.{package}.main':\n"
            "            print(signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL)\n"
            "            print(*{'urllib3', 'logging', 'asyncio', 'typing'} & set(sys.modules))\n"
            "            raise SystemExit\n"
            "sys.meta_path.insert(0, Finder)\n"
            "main()\n"
        )
        done = subprocess.run(
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}",
            ],
            capture_output=True,
            text=True,
            check=True,
        )

        assert ["True", ""] == done.stdout.splitlines()

    @pytest.mark.parametrize(
        ("package", "extra"), [("sidecar", "sidecar"), ("aggregator", "aggregator")]
    )
    def test_a_command_without_its_extra_says_so(self, package, extra):
        """The base package has the command, and not what it needs."""
        code = (
            "import sys\n"
            "sys.modules |= dict.fromkeys(('kubernetes', 'pydantic', 'structlog'))\n"
            f"from reporter.{package}.__main__ import main\n"
            "sys.exit(main())"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
        )

        assert (2, "") == (done.returncode, done.stdout)
        assert f"is not installed: pip install 'status-reporter[{extra}]'" in done.stderr
        assert 1 == len(done.stderr.splitlines())

    def test_generated_kubernetes_classes_are_never_imported(self):
        """They would cost 23 MB of memory each time."""
        code = (
            "import pkgutil, importlib, sys, reporter\n"
            "for found in pkgutil.walk_packages(reporter.__path__, 'reporter.'):\n"
            "    importlib.import_module(found.name)\n"
            "print(*(name for name in sys.modules if name.startswith(('kubernetes.aio',"
            " 'kubernetes.client.api.', 'kubernetes.client.models.'))))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
        )

        assert "" == done.stdout.strip()


class TestLocks:
    """scripts/check_locks.py tells a lock that fits from one that does not."""

    TEXT = (ROOT / "requirements" / "image.txt").read_text(encoding="utf-8")

    def problems(self, text: str, *more: str) -> list[str]:
        """Check TEXT as the lock of the image, with MORE requirements in pyproject.toml."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        inputs = [*check_locks.extra_inputs(project, "all"), *map(Requirement, more)]
        return list(check_locks.problems(check_locks.read_lock(text), inputs))

    def test_a_lock_that_does_not_fit(self):
        """A pin is missing, too old, left over, or without the hash that keeps other files out."""
        lines = self.TEXT.splitlines(keepends=True)
        start = next(i for i, line in enumerate(lines) if line.startswith("durationpy=="))
        name = lines[start].split(" ")[0]
        rest = next(i for i in range(start + 1, len(lines)) if not lines[i].startswith("    --"))
        unhashed = "".join([*lines[:start], f"{name}\n", *lines[rest:]])
        (old,) = self.problems(self.TEXT, "structlog>=9999")

        assert old.startswith("structlog==")
        assert old.endswith("does not fit `structlog>=9999`, wanted by pyproject.toml")
        assert ["packaging is missing, wanted by pyproject.toml"] == self.problems(
            self.TEXT, "packaging"
        )
        assert ["durationpy has no hash"] == self.problems(unhashed)
        assert ["extra is pinned, but nothing wants it"] == self.problems(
            self.TEXT + "extra==1.0 \\\n    --hash=sha256:00\n"
        )

    def test_lock_of_a_plugins_image(self):
        """Packages that are not installed here: what is asked for is there, hashed, and fits."""
        folder = ROOT / "deploy" / "plugins" / "ansible"
        text = (folder / "requirements.txt").read_text(encoding="utf-8")
        wanted = (folder / "requirements.in").read_text(encoding="utf-8")
        bare = "a==1 \\\n    --hash=sha256:00\nb==2 # from https://x\n"

        assert [] == list(check_locks.foreign_problems(text, wanted))
        assert "ansible-core" in check_locks.read_lock(text)
        assert [
            "a==1 does not fit `a>1`",
            "c is missing",
            "b has no hash",
            "names a download address",
        ] == list(check_locks.foreign_problems(bare, "# why\na>1\nb  # too\nc\n"))


class TestDocuments:
    """scripts/check_docs.py finds what points nowhere."""

    def test_links_and_anchors(self, tmp_path):
        """A link to a file or heading that is not there is named; others and code are not."""
        (tmp_path / "b.md").write_text("# One `thing`, first\n")
        document = tmp_path / "a.md"
        document.write_text(
            "[ok](b.md) [ok](b.md#one-thing-first) [web](https://example.org/x)\n"
            "[gone](c.md) [lost](b.md#two) `[code](d.md)`\n```\n[code](d.md)\n```\n"
        )

        assert [
            "the link c.md leads nowhere",
            "the link b.md#two names a heading that is not there",
        ] == list(check_docs.broken_links(document))

    def test_make_targets(self, tmp_path):
        """A target that the Makefile lacks is named; the verb in a sentence is not a target."""
        document = tmp_path / "a.md"
        document.write_text("Run `make test`, then\n\n    $ make nothing\n\nto make sure.\n")

        assert ["`make nothing` is not in the Makefile"] == list(
            check_docs.unknown_targets(document, {"test"})
        )


class TestImageTree:
    """The two scripts that shape the image."""

    def test_prune_drops_what_nobody_imports_and_keeps_licences(self, tmp_path):
        """The rest of the tree stays as it is installed."""
        gone = ["bin/tool", "some/tests/test_x.py", "kubernetes/client/models/v1_pod.py"]
        gone += ["kubernetes/client/api/core_v1_api.py"]
        gone += [f"{part}/__init__.py" for part in image_prune.PARTS]
        gone += ["some/__pycache__/x.pyc", "some-1.dist-info/RECORD", "some/x.pyi", "some/x.pyx"]
        for name, packages in image_prune.UNUSED.items():
            gone += [f"{name}-1.0.dist-info/METADATA"]
            gone += [f"{package}/__init__.py" for package in packages]
        kept = ["kubernetes/client/rest.py", "some/x.py", "cffi-1.dist-info/METADATA"]
        kept += [f"{generated}/__init__.py" for generated in image_prune.GENERATED]
        kept += ["some-1.dist-info/METADATA", "some-1.dist-info/licenses/LICENSE"]
        for name in [*gone, *kept]:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

        image_prune.prune(tmp_path)

        left = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
        assert set(kept) == left

    def test_prune_says_when_its_list_is_out_of_date(self, tmp_path):
        """A package that is no longer installed must not stay in the list unseen."""
        with pytest.raises(FileNotFoundError):
            image_prune.prune(tmp_path)

    def test_what_is_not_ours_is_compiled_without_docstrings(self, tmp_path, monkeypatch):
        """Ours, the server and the standard library keep theirs, and their assertions."""
        trees = {
            "foreign": "app/site/foreign",
            "server": "app/site/aiohttp",
            "ours": "app/reporter",
            "start": "app/cmd",
            "standard": "lib",
        }
        for name, tree in trees.items():
            (tmp_path / tree).mkdir(parents=True)
            text = '"""A long text."""\nchecked = __debug__\n'
            (tmp_path / tree / f"{name}.py").write_text(text)
        monkeypatch.setattr(image_bytecode.sysconfig, "get_path", lambda _: str(tmp_path / "lib"))
        monkeypatch.setattr(image_bytecode, "import_all", lambda _: None)
        monkeypatch.setattr(image_bytecode, "read_kubeconfig", lambda: None)

        assert image_bytecode.main(tmp_path / "app") is None

        kept = {}
        for name, tree in trees.items():
            # Under the only name that the interpreter of the image looks for.
            (bytecode,) = (tmp_path / tree / "__pycache__").iterdir()
            assert f"{name}.{sys.implementation.cache_tag}.pyc" == bytecode.name
            module = {}
            exec(marshal.loads(bytecode.read_bytes()[16:]), module)  # after the header
            kept[name] = (module.get("__doc__"), module["checked"])
        whole = ("A long text.", True)
        assert {"foreign": (None, False)} | dict.fromkeys(
            ("server", "ours", "start", "standard"), whole
        ) == kept

    def test_extension_of_another_python_is_named(self, tmp_path):
        """Build and runtime stage with different Pythons must not give an image."""
        (tmp_path / "core.cpython-399-x86_64-linux-gnu.so").touch()
        (tmp_path / "stable.abi3.so").touch()

        message = image_bytecode.main(tmp_path)

        assert message.startswith("core.cpython-399-x86_64-linux-gnu.so was not made for this")
        assert "BUILD_IMAGE and RUNTIME_IMAGE" in message
