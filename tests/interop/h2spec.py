#!/usr/bin/env python3
"""h2spec, the conformance tests of HTTP/2, against quantd: h2spec.py QUANTD FOLDER, with h2spec in the PATH.

Prints lines 'pass|fail|skip NAME WHY', separated by tabs. A case of DIFFERENCES must fail, and counts as skipped with its reason. Standard library
only.
"""

import json
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree

# (section, case): why another behaviour is right.
DIFFERENCES = {
    ("http2/3.5", "Sends invalid connection preface"):
        "bytes that are not HTTP/2 are answered with a line of HTTP/1.1, and then the connection is closed; h2spec takes the line for a frame. "
        "people who point a browser at the port are told what it is",
    ("http2/4.2", "Sends a large size HEADERS frame that exceeds the SETTINGS_MAX_FRAME_SIZE"):
        "the frame has 20,000 bytes: h2spec takes the limit for 16,384, its default, but the server's SETTINGS allow 131,072, so it is not an error",
}
# What h2spec reports if its GET was completely refused before its second frame arrived: the stream was ended by RST_STREAM with NO_ERROR
# (RFC 9113, 8.1), and later frames are ignored (5.1). Such a section is tried again, until its frames arrive together.
REFUSED_FIRST = ("DATA Frame (length:47, flags:0x01", "RST_STREAM Frame (length:4, flags:0x00, stream_id:1)")
TRIES = 5
MOST = 60  # seconds


def cases(port, report, *sections, most=MOST):
    """(section, case): (outcome, what was seen)."""
    subprocess.run(["h2spec", "--port", port, "--strict", "--timeout=5", f"--junit-report={report}", *sections], stdout=sys.stderr, timeout=most)
    outcomes = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        outcome = next((child.tag for child in case), "passed")
        if outcome != "skipped" or not sections:  # the others were not asked for
            outcomes[case.get("package"), case.get("classname")] = outcome, " ".join("".join(case.itertext()).split())
    return outcomes


def refused_first(text):
    return any(seen in text for seen in REFUSED_FIRST)


def main():
    quantd, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    ready, report = folder / "ready.json", folder / "report.xml"
    for file in (ready, report):
        file.unlink(missing_ok=True)
    server = subprocess.Popen([quantd, "--listen=127.0.0.1:0", "--http_listen=", f"--ready_file={ready}", "--log_level=error"])
    try:
        end = time.monotonic() + MOST
        while not ready.exists():
            if server.poll() is not None or time.monotonic() > end:
                sys.exit("quantd does not start")
            time.sleep(0.05)
        port = json.loads(ready.read_text())["grpc"][0].split(":")[1]
        outcomes = cases(port, report)
        for _ in range(TRIES):
            again = {section for (section, _), (_, text) in outcomes.items() if refused_first(text)}
            for section in again:
                outcomes |= {key: new for key, new in cases(port, report, section).items() if refused_first(outcomes[key][1])}
    finally:
        server.terminate()
        if (status := server.wait(timeout=MOST)) != 0:
            print(f"fail\tthe server's end\tstatus {status}")
    left = dict(DIFFERENCES)
    for key, (outcome, text) in outcomes.items():
        name = f"{key[0]}: {key[1]}"
        why = left.pop(key, None)
        if why is not None:
            print(f"skip\t{name}\t{why}" if outcome != "passed" else f"fail\t{name}\tpasses: it has a reason in h2spec.py, but needs none")
        elif outcome == "passed":
            print(f"pass\t{name}\t")
        else:
            print(f"fail\t{name}\t{outcome}: {text[:200]}")
    for section, case in left:
        print(f"fail\t{section}: {case}\tdid not run")


if __name__ == "__main__":
    main()
