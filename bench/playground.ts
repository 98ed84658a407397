/**
 * Times the built playground in Chromium, and weighs its packages: `npx jiti bench/playground.ts`, after
 * `npm run build && npm run build:playground`. Medians; each first load has an empty cache.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { build } from "rolldown";
import { serveFolder } from "../src/cli/playground/command.ts";
import { launchChromium } from "../test/browser/chromium.ts";
import { wholeMedian } from "./harness/figures.ts";

const root = path.dirname(import.meta.dirname);
const folder = path.join(root, "dist/playground");
const rounds = 9;

/** In the page: milliseconds from a change of a field until `done` holds, and the longest gap between two frames. */
const timed = `async (field, value, done) => {
  const begun = performance.now();
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  let [longest, last] = [0, begun];
  for (;;) {
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    [longest, last] = [Math.max(longest, now - last), now];
    if (now - begun > 60_000) throw new Error("the page did not finish");
    if (done()) return [now - begun, longest];
  }
}`;

const settled = `() => document.querySelector(".took:not(.busy)") !== null`;
const field = (name: string): string =>
  `[...document.querySelectorAll(".field")].find((each) => each.querySelector(".name").textContent === ${JSON.stringify(name)}).querySelector("input")`;

async function timesOf(page: Page, values: readonly string[], name: string): Promise<readonly (readonly number[])[]> {
  const samples: (readonly number[])[] = [];
  for (let i = 0; i < rounds; i++) {
    const value = values[i % values.length] ?? "";
    samples.push(await page.evaluate<number[]>(`(${timed})(${field(name)}, "${value}", ${settled})`));
  }
  return samples;
}

async function times(): Promise<void> {
  const serving = await serveFolder(folder, 0);
  const browser = await launchChromium();
  const rows: Record<string, { "median ms": number; "longest frame ms"?: number }> = {};
  try {
    const loads: number[] = [];
    for (let i = 0; i < rounds; i++) {
      const context = await browser.newContext();
      const page = await context.newPage();
      await page.goto(`http://127.0.0.1:${serving.port}/`, { waitUntil: "commit" });
      await page.waitForSelector(".verdict.ok");
      await page.waitForSelector(".took:not(.busy)");
      loads.push(await page.evaluate<number>("performance.now()"));
      await context.close();
    }
    rows["first load, to a verified and predicted program"] = { "median ms": wholeMedian(loads) };
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${serving.port}/`);
    await page.waitForSelector(".verdict.ok");
    for (const devices of [4, 8, 64]) {
      await page.evaluate(`(${timed})(${field("devices")}, "${devices}", ${settled})`);
      for (const pane of ["host", "timeline"]) {
        await page.click(`#tab-${pane}`);
        await page.waitForTimeout(300);
        const samples = await timesOf(page, ["8192", "16384"], "M");
        rows[`edit, ${devices} ranks, to all panes (${pane} shown)`] = {
          "median ms": wholeMedian(samples.map(([time = 0]) => time)),
          "longest frame ms": wholeMedian(samples.map(([, frame = 0]) => frame)),
        };
      }
    }
    await page.evaluate(`(${timed})(${field("devices")}, "4", ${settled})`);
    await page.click("#tab-host");
    rows["edit of a host program, 4 ranks, to its verdict"] = { "median ms": await verdictTime(page) };
  } finally {
    await browser.close();
    await serving.close();
  }
  console.table(rows);
}

/** Deletes the Wait and puts it back. */
async function verdictTime(page: Page): Promise<number> {
  const samples: number[] = [];
  for (let i = 0; i < rounds; i++) {
    await page.click('.editor.host .cm-line:has-text("Wait Communication")');
    await page.keyboard.press("Home");
    await page.keyboard.press("Shift+End");
    await page.evaluate(`document.addEventListener("keydown", () => {
      const begun = performance.now();
      window.verdict = new Promise((resolve) => {
        const look = () => document.querySelector(".verdict.wrong") ? resolve(performance.now() - begun) : requestAnimationFrame(look);
        look();
      });
    }, { once: true, capture: true })`);
    await page.keyboard.press("Delete");
    samples.push(await page.evaluate<number>("window.verdict"));
    await page.click("[aria-label=Undo]");
    await page.waitForSelector(".verdict.ok");
    await page.waitForSelector(".took:not(.busy)");
  }
  return wholeMedian(samples);
}

/** What the page and its workers use of each package, bundled alone. */
const used: Readonly<Record<string, string>> = {
  "CodeMirror (view, state, language, lint, commands, TypeScript)": `
    export { EditorView } from "@codemirror/view"; export { setDiagnostics } from "@codemirror/lint";
    export { typescriptLanguage } from "@codemirror/lang-javascript"; export { history } from "@codemirror/commands";
    export { StreamLanguage } from "@codemirror/language";`,
  preact: `export { render } from "preact"; export * from "preact/hooks";`,
  diff: `export { diffLines } from "diff";`,
  fflate: `export { deflateSync, inflateSync } from "fflate";`,
  sucrase: `export { transform } from "sucrase";`,
  "uplot (lazy)": `export { default } from "uplot";`,
  "typescript (lazy)": `export { createLanguageService } from "typescript";`,
};

async function weights(): Promise<void> {
  const scratch = mkdtempSync(path.join(root, "dist/weights-"));
  const rows: Record<string, { "kB, gzip": number }> = {};
  try {
    for (const [name, text] of Object.entries(used)) {
      const input = path.join(scratch, "one.ts");
      writeFileSync(input, text);
      const { output } = await build({ input, platform: "browser", write: false, output: { minify: true } });
      rows[name] = { "kB, gzip": gzipSync(output[0].code).length / 1e3 };
    }
  } finally {
    rmSync(scratch, { recursive: true });
  }
  for (const file of ["page.js", "worker.js", "page.css", "replay-worker.js", "types-worker.js"])
    rows[file] = { "kB, gzip": gzipSync(readFileSync(path.join(folder, file))).length / 1e3 };
  console.table(rows);
}

await times();
await weights();
