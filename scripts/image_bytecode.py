"""Compiles what the image's programs import, with the interpreter that will run them.

    python3 image_bytecode.py APP

Lives in the runtime stage of the Dockerfile. Without bytecode a start costs twice the processor
time and 5 MB more memory, and a read-only container could never keep any. The standard library
counts too: some bases ship it without. Bytecode is of the unchecked kind, valid whatever the time
stamps are, since builders may rewrite those.
"""

import compileall
import contextlib
import importlib
import pkgutil
import py_compile
import re
import sys
import sysconfig
from pathlib import Path

# For developers, in the standard library; never imported by us.
NEVER_IMPORTED = re.compile(
    r"/(ensurepip|idlelib|lib2to3|pydoc_data|test|tkinter|turtledemo|unittest|dist-packages)/"
)


def foreign_extensions(app: Path) -> list[str]:
    """Name the extension modules below APP that this interpreter cannot load."""
    ours = f".{sysconfig.get_config_var('SOABI')}.so"
    tagged = (library.name for library in app.rglob("*.cpython-*.so"))
    return sorted(name for name in tagged if not name.endswith(ours))


def import_all(package: str) -> None:
    """Import PACKAGE and every module below it; ImportError shows what was pruned too far."""
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        importlib.import_module(module.name)


def read_kubeconfig() -> None:
    """Let the client look for a kubeconfig: what it imports for that, it imports only then."""
    errors = importlib.import_module("reporter.errors")
    with contextlib.suppress(errors.SettingsError):
        importlib.import_module("reporter.kube.api").KubeApi.from_kubeconfig("/nowhere")


def compile_packages(site: Path) -> None:
    """Compile what pip installed without docstrings and assertions: less memory in each process."""
    compileall.compile_dir(
        site,
        maxlevels=20,
        quiet=1,
        optimize=2,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    # Under the name of ordinary bytecode: ours keeps its assertions.
    for bytecode in site.rglob("*.opt-2.pyc"):
        bytecode.rename(bytecode.with_name(bytecode.name.replace(".opt-2.", ".")))


def main(app: Path) -> str | None:
    """Compile for the programs in APP; return what is wrong, None when all is well."""
    if foreign := foreign_extensions(app):
        return (
            f"{foreign[0]} was not made for this Python {sys.version.split()[0]}: BUILD_IMAGE and"
            " RUNTIME_IMAGE need the same minor version of Python and the same architecture"
        )
    compile_packages(app / "site")
    # Not all of APP: compileall would do its packages again, since it takes unchecked bytecode for
    # out of date. That is wanted for the server alone: its parsers of what strangers send keep
    # their assertions.
    server = app / "site" / "aiohttp"
    for tree in (app / "cmd", app / "reporter", server, sysconfig.get_path("stdlib")):
        compileall.compile_dir(
            tree,
            maxlevels=20,
            quiet=1,
            rx=NEVER_IMPORTED,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    import_all("reporter")
    read_kubeconfig()
    return None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
