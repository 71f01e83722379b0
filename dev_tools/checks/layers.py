"""Includes point downwards: a room sees only rooms of a lower level, and foreign headers stay in the rooms that docs/layers.txt names."""
import re

from . import tracked

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def read_layers(root):
    level, only = {}, []
    for line in (root / "docs/layers.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("only "):
            pattern, rooms = line[5:].split(" in ")
            only.append((pattern.strip(), rooms.split()))
        elif line:
            number, rooms = line.split(":")
            level.update({room: int(number) for room in rooms.split()})
    return level, only


def check(root):
    level, only = read_layers(root)
    errors = []
    for path in tracked(root, ".h", ".cc", ".def"):
        parts = path.split("/")
        if parts[0] != "strop" or len(parts) < 3:
            continue
        room = parts[1]
        if room not in level:
            errors.append(f"{path}: room '{room}' has no level in docs/layers.txt")
            continue
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            header = found.group(1)
            for pattern, rooms in only:
                if (header.startswith(pattern) or header.endswith(pattern)) and room not in rooms:
                    errors.append(f"{path}:{number}: {header} may be included only in {', '.join(rooms)}")
            target = header.split("/")
            if target[0] != "strop" or len(target) < 3 or target[1] == room:
                continue
            if level.get(target[1], 99) >= level[room]:
                errors.append(f"{path}:{number}: {room} (level {level[room]}) includes {header} "
                              f"(level {level.get(target[1], 'none')}); only lower levels may be included")
    return errors, []
