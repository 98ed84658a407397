/** The system's Chromium. Nothing is downloaded: a machine without one skips these tests (.ci/run). */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const places = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"].map(
  (name) => `/usr/bin/${name}`,
);

export function launchChromium(): Promise<Browser> {
  const found = places.find((place) => existsSync(place));
  if (found === undefined) throw new Error(`none of ${places.join(", ")} exists: install chromium`);
  // Containers lack the user namespaces of its sandbox; the pages are Braid's own.
  return chromium.launch({ executablePath: found, args: ["--no-sandbox"], timeout: 30_000 });
}
