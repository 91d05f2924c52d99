#!/usr/bin/env python3
"""h2spec, the conformance tests of HTTP/2, against quantd: h2spec.py QUANTD FOLDER, with h2spec in the PATH.

Prints lines 'pass|fail|skip NAME WHY', tab between. A case of DIFFERENCES must fail, and counts as skipped with its reason; one of
TIMED may pass. Standard library only.
"""

import json
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree

# (section, case): why another behavior is right.
DIFFERENCES = {
    ("http2/3.5", "Sends invalid connection preface"):
        "bytes that are not HTTP/2 are answered with a line of HTTP/1.1, and then the connection is closed; h2spec takes the line for a frame. "
        "people who point a browser at the port are told what it is",
    ("http2/4.2", "Sends a large size HEADERS frame that exceeds the SETTINGS_MAX_FRAME_SIZE"):
        "the frame has 20,000 bytes: h2spec takes the limit for 16,384, its default, but the server's SETTINGS allow 131,072, so that it is no error",
}
# (section, case): why it passes or fails as the machine is quick.
TIMED = {
    ("http2/8.1", "Sends a second HEADERS frame without the END_STREAM flag"):
        "its GET has been refused whole before the second frame came; the stream was ended by RST_STREAM with NO_ERROR (RFC 9113, 8.1), and what "
        "comes after that is ignored (5.1)",
}
MOST = 60  # seconds


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
        subprocess.run(["h2spec", "--port", port, "--strict", "--timeout=5", f"--junit-report={report}"], stdout=sys.stderr, timeout=MOST)
    finally:
        server.terminate()
        if (status := server.wait(timeout=MOST)) != 0:
            print(f"fail\tthe server's end\tstatus {status}")
    left = dict(DIFFERENCES)
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        key = case.get("package"), case.get("classname")
        name = f"{key[0]}: {key[1]}"
        why = left.pop(key, None)
        outcome = next((child.tag for child in case), "passed")
        if why is not None:
            print(f"skip\t{name}\t{why}" if outcome != "passed" else f"fail\t{name}\tpasses: it has a reason in h2spec.py, but needs none")
        elif outcome == "passed":
            print(f"pass\t{name}\t")
        elif key in TIMED:
            print(f"skip\t{name}\t{TIMED[key]}")
        else:
            print(f"fail\t{name}\t{outcome}: {' '.join(''.join(case.itertext()).split())[:200]}")
    for section, case in left:
        print(f"fail\t{section}: {case}\tdid not run")


if __name__ == "__main__":
    main()
