"""A crash of the shipped program, read with the symbols that are shipped separately, by the command in deploy/OPERATIONS.md."""

import ctypes
import pathlib
import re
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TREE = ROOT / "build/release"
README = (ROOT / "deploy/OPERATIONS.md").read_text().split("### Crashes\n", 1)[1].split("\n## ", 1)[0]


def collect(symbols, root, *programs):
    command = [ROOT / "deploy/collect_image.sh", f"--symbols={symbols}", root, *programs]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """(folder of the image, folder of the symbols)"""
    folder = tmp_path_factory.mktemp("shipped")
    done = collect(folder / "symbols", folder / "image", TREE / "server/quantd", TREE / "client/quantctl")
    assert done.returncode == 0, done.stderr
    return folder / "image", folder / "symbols"


def crash(program, folder, form="text"):
    """The lines of its log."""
    ready, log = folder / "ready.json", folder / "log"
    flags = ["--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0", f"--ready_file={ready}", f"--log_format={form}"]
    with open(log, "w") as file:
        process = subprocess.Popen([program, *flags], stderr=file)
    deadline = time.monotonic() + 60
    while not ready.exists():
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)
    # To the main thread: a thread that is just starting has no frame of quantd.
    assert ctypes.CDLL(None).tgkill(process.pid, process.pid, signal.SIGSEGV) == 0
    assert process.wait(30) == -signal.SIGSEGV
    return log


def documented(log, symbols, build_id, form):
    """The output of the README's commands, pasted into bash next to the unpacked symbols."""
    (block,) = re.findall(r"```sh\n(.*?)```", README, re.S)
    unpack, rest = block.split("\n", 1)
    assert unpack.startswith("tar ")
    rest = rest.replace("BUILD_ID", build_id).replace("LOG", str(log))
    if form == "json":
        (jq,) = re.findall(r"`(jq .*? LOG)`", README)
        rest = re.sub(r"grep .*\| cut [^|]*", lambda _: jq.replace("LOG", str(log)) + " ", rest)
    done = subprocess.run(["bash", "-c", rest], cwd=symbols, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def function_at(offset):
    """In the program before stripping, by its own table of symbols."""
    command = ["nm", "--demangle", "--defined-only", "--print-size", TREE / "server/quantd"]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        found = re.fullmatch(r"([0-9a-f]{16}) ([0-9a-f]{16}) [tTwW] (.*)", line)
        if found and int(found[1], 16) <= offset < int(found[1], 16) + int(found[2], 16):
            return found[3].replace(" [clone .cold]", "")
    raise AssertionError(hex(offset))


def bare(name):
    """Without arguments and namespaces: nm and addr2line write these differently."""
    return re.sub(r"\(anonymous namespace\)::|\(.*", "", name).split("::")[-1]


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_documented_command_names_the_right_functions(shipped, tmp_path, form):
    image, symbols = shipped
    log = crash(image / "quantd", tmp_path, form)
    text = log.read_text()
    build_id = re.search(r"build_id\W+([0-9a-f]{40})", text)[1]
    offsets = [int(offset, 16) for offset in re.findall(r"module\W+quantd\W+offset\W+(0x[0-9a-f]+)", text)]
    assert len(offsets) >= 3
    # One line each, followed by the functions that it was inlined into: the last one exists as a function.
    answers = re.split(r"\n(?! \(inlined by\))", documented(log, symbols, build_id, form).strip())
    assert len(answers) == len(offsets)
    for offset, answer in zip(offsets, answers):
        outermost = answer.splitlines()[-1].removeprefix(" (inlined by) ")
        assert bare(outermost.split(" at ")[0]) == bare(function_at(offset)), (hex(offset), answer)
    # main waits for a signal.
    assert re.search(r"quantd::process::WaitForSignal\(.* at \S*server/process/signals\.cc:\d+", answers[0])
    assert any(re.search(r"\bServe\b.* at \S*server/main\.cc:\d+", answer) for answer in answers)
