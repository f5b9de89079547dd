# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that the tests ask about a page, through the pipe of its DevTools protocol (stdlib only)."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from support import Skip

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

# ---- what to ask a page -------------------------------------------------------------------------------------------

# Corners of each text on the screen; which texts of one drawing overlap, or leave it.
OVERLAPS = """(() => {
  const corners = t => { const b = t.getBBox(), m = t.getScreenCTM();
    return [[b.x, b.y + 2], [b.x + b.width, b.y + 2], [b.x + b.width, b.y + b.height - 2], [b.x, b.y + b.height - 2]]
      .map(([x, y]) => [m.a * x + m.c * y + m.e, m.b * x + m.d * y + m.f]); };
  const apart = (p, q) => [p, q].some(r => r.some((c, i) => { const d = r[(i + 1) % 4], n = [d[1] - c[1], c[0] - d[0]],
    on = s => s.map(v => v[0] * n[0] + v[1] * n[1]), a = on(p), b = on(q);
    return Math.max(...a) <= Math.min(...b) || Math.max(...b) <= Math.min(...a); }));
  const bad = [];
  for (const svg of document.querySelectorAll('svg')) {
    if (svg.getBoundingClientRect().width == 0) continue;  // not shown
    const box = svg.getBoundingClientRect(), texts = [...svg.querySelectorAll('text')].filter(t => t.textContent);
    const at = texts.map(corners);
    at.forEach((p, i) => {
      if (p.some(c => c[0] < box.left - 1 || c[0] > box.right + 1 || c[1] < box.top - 1 || c[1] > box.bottom + 1))
        bad.push(svg.getAttribute('aria-label') + ': outside: ' + texts[i].textContent);
      for (let j = i + 1; j < at.length; j++)
        if (!apart(p, at[j]))
          bad.push(svg.getAttribute('aria-label') + ': ' + texts[i].textContent + ' / ' + texts[j].textContent);
    });
  }
  return bad; })()"""

# The contrast of each text with what is drawn under it, by WCAG 2.1; those below 4.5.
CONTRAST = """(() => {
  const light = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
      .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
  const paper = getComputedStyle(document.body).backgroundColor, bad = [];
  for (const t of document.querySelectorAll('svg text')) {
    if (t.closest('svg').getBoundingClientRect().width == 0) continue;
    const b = t.getBoundingClientRect(), x = (b.left + b.right) / 2, y = (b.top + b.bottom) / 2;
    let under = paper;
    for (const r of t.closest('svg').querySelectorAll('rect')) {
      const s = r.getBoundingClientRect();
      if (s.left <= x && x <= s.right && s.top <= y && y <= s.bottom && getComputedStyle(r).fill != 'none')
        under = getComputedStyle(r).fill; }
    const c = ratio(getComputedStyle(t).fill, under);
    if (c < 4.5) bad.push(t.textContent + ' ' + c.toFixed(2)); }
  for (const e of document.querySelectorAll('p,td,th,figcaption,a,summary,.dim,.good,.look,.fault')) {
    const c = ratio(getComputedStyle(e).color, paper);
    if (c < 4.5) bad.push(e.textContent.slice(0, 30) + ' ' + c.toFixed(2)); }
  return bad; })()"""

# The texts of drawings that are shown with letters of fewer than 9.5 pixels.
SMALL = """[...document.querySelectorAll('svg text')]
  .filter(t => t.closest('svg').getBoundingClientRect().width > 0 && t.textContent)
  .map(t => [t, t.getScreenCTM()])
  .map(([t, m]) => [t.textContent, parseFloat(getComputedStyle(t).fontSize) * Math.hypot(m.a, m.b)])
  .filter(([text, size]) => size < 9.5)
  .map(([text, size]) => text + ': ' + size.toFixed(1))"""

# ---- the browser ----------------------------------------------------------------------------------------------------


class Browser:
    """with Browser() as browser: browser.open(path); browser.run("document.title")"""

    def __init__(self, width=1100, height=900):
        program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
        if not program:
            raise Skip("no Chromium here")
        self.profile = tempfile.mkdtemp(prefix="chex-browser-")
        asked, self.ask = os.pipe()
        self.answers, answer = os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", f"--window-size={width},{height}",
                 f"--user-data-dir={self.profile}", "about:blank"]
        # The protocol has its pipes at 3 and 4.
        self.process = subprocess.Popen(["/bin/sh", "-c", f'exec "$@" 3<&{asked} 4>&{answer}', "sh", program, *flags],
                                        pass_fds=(asked, answer), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(asked)
        os.close(answer)
        self.last, self.buffer, self.events, self.session = 0, b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.ask)
        self.process.kill()
        self.process.wait()
        os.close(self.answers)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, seconds=300):
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.answers], [], [], max(0, end - time.monotonic()))
            data = os.read(self.answers, 1 << 20) if ready else b""
            if not data:
                raise Skip("Chromium does not answer here")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.ask, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.last:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def open(self, path):
        """Load the file; the events of it are in self.events."""
        self.events.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.receive())

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def dark(self, on):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def paper(self, on):
        """As it is printed."""
        self.call("Emulation.setEmulatedMedia", media="print" if on else "")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def complaints(self):
        """What the console was told, and exceptions."""
        methods = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        return [e["params"] for e in self.events if e.get("method") in methods]

    def requests(self):
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def screenshot(self, path):
        """The whole page as PNG."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])
