"""./dev emulate: runs programs of the dev build on a processor that this machine is not, such as one with AVX-512.

    ./dev emulate bin/strop_fuzz --modules=20                    on a Skylake-X, which has AVX-512 without VNNI and BF16
    ./dev emulate --cpu=tigerlake strop_cpu_test --gtest_filter='Gemm.*'

Bochs interprets Debian's kernel and the program, one thread at a hundredth of a real processor's speed: enough for some modules of the fuzzer and for most unit
tests, not for times. Processors: `bochs --help cpu`. Bochs 2.7 rounds halves between two f16 away from zero (vcvtps2ph): Gemm.StoresHalvesAsTheFormatsRound
and Elementwise.IntegersToSmallFloats fail there for that reason.
"""
import os
import re
import shutil
import signal
import subprocess
import time

from building import folder
from environment import install
from progress import Failure, Step

PACKAGES = ["bochs", "bochs-term", "bochsbios", "vgabios", "isolinux", "syslinux-common", "xorriso", "cpio", "busybox-static"]
HOME = folder("emulated")
# (The sizes that Bochs gives for saved registers do not add up if they are compacted.)
KERNEL_OPTIONS = "console=ttyS0,115200 mitigations=off nokaslr quiet noxsaves clearcpuid=321,323 tsc=reliable lpj=100000 rdinit=/init"
INIT = """#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
exec >/dev/ttyS0 2>&1
cd /work
echo '== begin'
export {environment}
/work/{command}
echo "== end $?"
/bin/busybox sleep 1
/bin/busybox poweroff -f
"""
MACHINE = """cpu: model={cpu}, count=1, ips=100000000
memory: guest=2048, host=2048
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/vgabios/vgabios.bin
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path={image}, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev={serial}
display_library: term
log: {log}
panic: action=fatal
error: action=ignore
info: action=ignore
debug: action=ignore
"""


def kernel():
    """Debian's newest kernel for virtual machines, unpacked"""
    found = sorted((HOME / "kernel" / "boot").glob("vmlinuz-*"))
    if found:
        return found[-1]
    listed = subprocess.run(["apt-cache", "search", "--names-only", r"^linux-image-[0-9.]+-[0-9]+-cloud-amd64$"], capture_output=True, text=True, check=True).stdout.split("\n")
    names = sorted((line.split()[0] for line in listed if line.strip()), key=lambda name: [int(n) for n in re.findall(r"\d+", name)])
    if not names:
        raise Failure("apt-cache knows no linux-image-*-cloud-amd64; run apt-get update")
    with Step(f"fetching {names[-1]}"):
        subprocess.run(["apt-get", "download", "-q", names[-1]], cwd=HOME, check=True)
        for package in HOME.glob(f"{names[-1]}_*.deb"):
            subprocess.run(["dpkg", "-x", package.name, "kernel"], cwd=HOME, check=True)
    found = sorted((HOME / "kernel" / "boot").glob("vmlinuz-*"))
    if not found:
        raise Failure(f"{names[-1]} brought no kernel to {HOME / 'kernel' / 'boot'}")
    return found[-1]


def make_image(command, environment):
    """A disk that starts the kernel with nothing but the program, what it links and one command"""
    root, disk = HOME / "root", HOME / "disk"
    shutil.rmtree(root, ignore_errors=True)
    shutil.rmtree(disk, ignore_errors=True)
    for name in ("bin", "dev", "proc", "sys", "tmp", "work"):
        (root / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin" / "busybox")
    program = folder("dev") / command[0]
    if not program.is_file():
        raise Failure(f"no program {program}: build it first (./dev build dev {command[0]}), and name it as it lies in build/dev")
    target = root / "work" / program.name
    subprocess.run(["strip", "-o", target, program], check=True)
    for library in re.findall(r"(/\S+)", subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout):
        place = root / library.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, place)
    words = " ".join("'" + word.replace("'", "'\\''") + "'" for word in [program.name, *command[1:]])
    (root / "init").write_text(INIT.format(command=words, environment=environment))
    (root / "init").chmod(0o755)
    boot = disk / "isolinux"
    boot.mkdir(parents=True)
    with open(boot / "initrd", "wb") as archive:
        names = subprocess.run(["find", "."], cwd=root, capture_output=True, check=True).stdout
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=root, input=names, stdout=archive, check=True)
    shutil.copy(kernel(), boot / "vmlinuz")
    shutil.copy("/usr/lib/ISOLINUX/isolinux.bin", boot)
    shutil.copy("/usr/lib/syslinux/modules/bios/ldlinux.c32", boot)
    (boot / "isolinux.cfg").write_text(f"DEFAULT linux\nPROMPT 0\nTIMEOUT 1\nLABEL linux\n KERNEL vmlinuz\n INITRD initrd\n APPEND {KERNEL_OPTIONS}\n")
    subprocess.run(["xorriso", "-as", "mkisofs", "-quiet", "-o", HOME / "disk.iso", "-b", "isolinux/isolinux.bin", "-c", "isolinux/boot.cat", "-no-emul-boot",
                    "-boot-load-size", "4", "-boot-info-table", disk], check=True, capture_output=True)


def emulate(arguments):
    cpu, minutes, environment = "corei7_skylake_x", 60, "STROP_NUM_THREADS=1"
    while arguments and arguments[0].startswith("--"):
        option, _, value = arguments.pop(0).partition("=")
        if option == "--cpu" and value:
            cpu = value
        elif option == "--minutes" and value.isdigit():
            minutes = int(value)
        else:
            raise Failure(f"emulate: no option {option}; there are --cpu=NAME and --minutes=N, before the program")
    if not arguments:
        raise Failure("emulate: name a program of build/dev and its arguments, such as bin/strop_fuzz --modules=20")
    install(PACKAGES)
    HOME.mkdir(parents=True, exist_ok=True)
    make_image(arguments, environment)
    serial = HOME / "serial.txt"
    serial.unlink(missing_ok=True)
    (HOME / "bochsrc").write_text(MACHINE.format(cpu=cpu, image=HOME / "disk.iso", serial=serial, log=HOME / "bochs.log"))
    (HOME / "start").write_text("c\n")  # Debian's Bochs has a debugger, which waits for a word
    with Step(f"running {' '.join(arguments)} on {cpu}"):
        # (It wants a terminal.)
        machine = subprocess.Popen(["script", "-qec", "nice bochs -q -f bochsrc -rc start", "/dev/null"], cwd=HOME, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True, env=dict(os.environ, TERM="vt100"))
        end, shown, text = time.monotonic() + 60 * minutes, 0, ""
        try:
            while machine.poll() is None and time.monotonic() < end:
                time.sleep(1)
                text = serial.read_text(errors="replace") if serial.is_file() else ""
                begin = text.find("== begin")
                if begin >= 0:
                    print(text[max(begin, shown):], end="", flush=True)
                    shown = len(text)
                if "== end" in text:
                    break
        finally:
            if machine.poll() is None:
                os.killpg(machine.pid, signal.SIGTERM)
    ended = re.search(r"== end (\d+)", text)
    if not ended:
        raise Failure(f"the emulated machine did not come to an end within {minutes} minutes, or not as far as the program; see {serial} and {HOME / 'bochs.log'}")
    return int(ended[1])
