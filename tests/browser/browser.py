"""A headless Chromium, driven through chromedriver's protocol (https://www.w3.org/TR/webdriver2/) and, for sizes and schemes, DevTools'."""

import base64
import json
import os
import subprocess
import tempfile
import urllib.request

ARGUMENTS = [
    "--headless=new", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-default-apps", "--disable-extensions", "--hide-scrollbars",
]  # fmt: skip


class Browser:
    def __init__(self, *arguments):
        self.profile = tempfile.TemporaryDirectory(prefix="quantd-browser-", ignore_cleanup_errors=True)
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.driver.stdout:  # "ChromeDriver was started successfully on port 41234."
            if "started successfully on port" in line:
                self.url = "http://127.0.0.1:" + line.rsplit(maxsplit=1)[1].rstrip(".")
                break
        else:
            raise AssertionError("chromedriver did not start")
        options = [*ARGUMENTS, f"--user-data-dir={self.profile.name}", *arguments]
        if os.geteuid() == 0:
            options.append("--no-sandbox")
        capabilities = {"goog:chromeOptions": {"args": options}, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        session = self._send("/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.url += "/session/" + session["sessionId"]

    def _send(self, path, body=None, method="POST"):
        data = None if method == "DELETE" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def close(self):
        try:
            self._send("", method="DELETE")
        finally:
            self.driver.terminate()
            self.driver.wait(20)
            self.driver.stdout.close()
            self.profile.cleanup()

    def open(self, url):
        self._send("/url", {"url": url})

    def run(self, script, *arguments):
        """What the script returns in the page."""
        return self._send("/execute/sync", {"script": script, "args": list(arguments)})

    def devtools(self, command, **parameters):
        return self._send("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def look_like(self, width, scheme="light", height=800):
        phone = width < 500
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone)
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def console(self):
        """Errors and warnings, of the page and of its security policy."""
        return [entry["message"] for entry in self._send("/se/log", {"type": "browser"})]

    def requests(self):
        """The URL of each request since the last time."""
        messages = [json.loads(entry["message"])["message"] for entry in self._send("/se/log", {"type": "performance"})]
        return [of["params"]["request"]["url"] for of in messages if of["method"] == "Network.requestWillBeSent"]

    def picture(self, file):
        """The whole page as PNG."""
        height = self.run("return document.documentElement.scrollHeight")
        width = self.run("return innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        image = self.devtools("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(image["data"]))
