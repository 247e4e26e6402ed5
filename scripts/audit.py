"""Looks the pinned packages up among known vulnerabilities; says so where the service is out of reach.

    python scripts/audit.py

Exits with 1 if any is known.
"""

import json
import subprocess
import sys
from pathlib import Path

PINNED = Path(__file__).parent / "constraints.txt"


def main() -> int:
    """Run pip-audit over the constraints."""
    command = [sys.executable, "-m", "pip_audit", "-r", str(PINNED), "--no-deps", "--disable-pip", "-f", "json"]
    try:
        result = subprocess.run(
            [*command, "--progress-spinner", "off", "--timeout", "10"],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        found = json.loads(result.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        print("SKIPPED: the pinned packages were not audited: pip-audit gave no answer")
        return 0
    looked_up = [package for package in found if "skip_reason" not in package]
    if not looked_up:
        print(f"SKIPPED: none of {len(found)} pinned packages could be audited: the service is out of reach")
        return 0
    vulnerable = [package for package in looked_up if package["vulns"]]
    for package in vulnerable:
        names = ", ".join(vulnerability["id"] for vulnerability in package["vulns"])
        print(f"{package['name']} {package['version']}: {names}")
    print(f"{len(looked_up)} of {len(found)} pinned packages audited, {len(vulnerable)} with known vulnerabilities")
    return 1 if vulnerable else 0


if __name__ == "__main__":
    sys.exit(main())
