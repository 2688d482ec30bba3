"""The command `status-agent`: signals first, everything heavy after."""

import os
import sys


def main() -> int:
    """Collect what is asked for, deliver it, and return the exit code."""
    from reporter.runtime.lifecycle import install

    stop = install()  # a SIGTERM during the imports below must not be lost
    try:
        from reporter.agent.main import main
    except ModuleNotFoundError as error:
        needed = "pip install 'status-reporter[sidecar]'"
        print(f"status-agent: {error.name} is not installed: {needed}", file=sys.stderr)
        return 2
    return main(sys.argv[1:], os.environ, stop)


if __name__ == "__main__":
    sys.exit(main())
