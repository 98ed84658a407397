/** Takes docs/playground.png, the README's picture of the built playground, by `npm run screenshot`. */
import path from "node:path";
import { serveFolder } from "../src/cli/playground/command.ts";
import { launchChromium } from "../test/browser/chromium.ts";

const root = path.dirname(import.meta.dirname);
const serving = await serveFolder(path.join(root, "dist/playground"), 0);
const browser = await launchChromium();
try {
  const page = await browser.newPage({ viewport: { width: 1200, height: 720 }, colorScheme: "light" });
  await page.goto(`http://127.0.0.1:${serving.port}/`);
  await page.click("#tab-timeline");
  await page.waitForSelector(".took:not(.busy)");
  await page.fill('.field:has(.name:text-is("S")) input', "8");
  await page.waitForTimeout(500);
  await page.waitForSelector(".took:not(.busy)");
  await page.waitForSelector(".verdict.ok");
  await page.waitForTimeout(500);
  await page.screenshot({ path: path.join(root, "docs/playground.png") });
} finally {
  await browser.close();
  await serving.close();
}
