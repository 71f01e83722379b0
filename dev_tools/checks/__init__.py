"""The house rules, one module each. A module has `check(root) -> (errors, warnings)`, two lists of lines for a reader."""
import subprocess


def tracked(root, *suffixes):
    """Files of the repository (tracked, or new and not ignored) whose names end in one of the suffixes, sorted."""
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=True).stdout
    return sorted(f for f in set(out.splitlines()) if f.endswith(suffixes) and (root / f).is_file())
