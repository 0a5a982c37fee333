"""A memory cgroup of version 1 or 2 for cases that need a limit set from outside. Needs rights that few systems give; without them a case
is left out."""
import os

from case_runner import Skip

ROOTS = {1: "/sys/fs/cgroup/memory", 2: "/sys/fs/cgroup"}
LIMIT = {1: "memory.limit_in_bytes", 2: "memory.max"}


def own_paths():
    """{version: path of this process's memory group}."""
    paths = {}
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        for line in file.read().splitlines():
            number, controllers, path = line.split(":", 2)
            if "memory" in controllers.split(","):
                paths[1] = path
            elif number == "0":
                paths[2] = path
    return paths


class MemoryGroup:
    """with MemoryGroup(bytes) as group: subprocess.run(..., preexec_fn=group.enter)"""

    def __init__(self, limit):
        self.limit, self.path, self.version = limit, "", 0

    def make(self, version, path):
        parent = os.path.join(ROOTS[version], path.lstrip("/"))
        folder = os.path.join(parent if os.path.isdir(parent) else ROOTS[version], f"pith-test-{os.getpid()}")
        os.mkdir(folder)
        try:
            self.path = folder
            self.write(LIMIT[version], self.limit)  # a group without the controller has no such file
            self.version = version
        except OSError:
            os.rmdir(folder)
            raise

    def __enter__(self):
        try:
            paths = own_paths()
        except OSError:
            raise Skip("this system has no cgroups") from None
        reasons = []
        for version, path in sorted(paths.items()):
            try:
                self.make(version, path)
                return self
            except OSError as error:
                reasons.append(f"version {version}: {error.strerror}")
        raise Skip(f"no memory cgroup can be made ({', '.join(reasons) or 'none is known'})")

    def __exit__(self, *_):
        os.rmdir(self.path)

    def write(self, name, value):
        path = os.path.join(self.path, name)
        if not os.path.exists(path):
            raise OSError(2, "the memory controller is not enabled here", path)
        with open(path, "w", encoding="utf-8") as file:
            file.write(str(value))

    def enter(self):
        with open(os.path.join(self.path, "cgroup.procs"), "w", encoding="utf-8") as file:
            file.write(str(os.getpid()))

    def times_reached(self):
        """How often the limit was reached so far."""
        if self.version == 1:
            with open(os.path.join(self.path, "memory.failcnt"), encoding="utf-8") as file:
                return int(file.read())
        with open(os.path.join(self.path, "memory.events"), encoding="utf-8") as file:
            return dict((name, int(n)) for name, n in (line.split() for line in file))["max"]
