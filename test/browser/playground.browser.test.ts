/** The built playground in Chromium: panes, controls, breaking and repairing, sharing, and hostile programs. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { gzipSync } from "node:zlib";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Serving, serveFolder } from "../../src/cli/playground/serve-folder.ts";
import { paneNames } from "../../playground/model/state.ts";
import { launchChromium } from "./chromium.ts";

const root = path.resolve(import.meta.dirname, "../..");
const folder = path.join(root, "dist/playground");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Evaluated in the page: each rule with the first element that breaks it. */
const seriousFindings = `axe.run().then(({ violations }) => violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .map(({ id, nodes }) => id + ": " + nodes[0].html))`;
const complaints: string[] = [];
/** Paths that the page has asked for. */
const requests: string[] = [];
let browser: Browser;
let serving: Serving;
let context: BrowserContext;
let page: Page;

beforeAll(async () => {
  browser = await launchChromium();
  serving = await serveFolder(folder, 0);
});
afterAll(async () => {
  await browser.close();
  await serving.close();
});
afterEach(async () => {
  await context.close();
  requests.length = 0;
  expect(complaints.splice(0)).toEqual([]);
});

interface Opening {
  readonly dark?: boolean;
  readonly width?: number;
  readonly hash?: string;
}

async function open({ dark = false, width = 1280, hash = "" }: Opening = {}): Promise<void> {
  context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme: dark ? "dark" : "light",
    permissions: ["clipboard-read", "clipboard-write"],
  });
  await openPage(hash);
}

async function openPage(hash = ""): Promise<void> {
  page = await context.newPage();
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol === "http:") requests.push(url.pathname);
    if (url.protocol.startsWith("http") && url.port !== String(serving.port)) complaints.push(request.url());
  });
  await page.goto(`http://127.0.0.1:${serving.port}/${hash}`);
  await settled();
}

/** Until the page has compiled what it shows. */
async function settled(): Promise<void> {
  await page.waitForFunction(`document.querySelector(".took:not(.busy)") !== null`, null, { timeout: 20_000 });
}

async function verdict(): Promise<string> {
  await settled();
  return (await page.textContent(".badge"))?.trim() ?? "";
}

/** Replaces the whole program, as pasting does. */
async function write(text: string): Promise<void> {
  await page.click(".editor.source .cm-content");
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(text);
  await page.waitForTimeout(50);
}

const program = (body: string): string =>
  `import { DeviceMesh, Fusion, program, set } from "braid";\nexport default program({ S: 2 }, ({ devices, params: { S } }) => {\n${body}\n  const f = new Fusion();\n  const x = f.input([8], "float");\n  const y = set(x);\n  f.output(y);\n  x.setDeviceMesh(DeviceMesh.range(devices));\n  y.outerSplit(0, S).parallelize("Stream");\n  return f;\n});\n`;

describe("the first load", () => {
  it("is well below 500 KB and shows a verified program", async () => {
    await open();
    expect(await verdict()).toBe("Verified");
    const loaded = [...new Set(requests)].filter((name) => name !== "/");
    expect(loaded.toSorted()).toEqual(["/page.css", "/page.js", "/worker.js"]);
    const sizes = ["index.html", ...loaded].map((name) => gzipSync(readFileSync(path.join(folder, name))).length);
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(490_000);
  });
});

describe("panes", () => {
  it.each([
    [false, 1280],
    [true, 800],
  ])("have no serious finding of axe, and nothing beyond the window (dark: %s, %i px)", async (dark, width) => {
    await open({ dark, width });
    for (const pane of paneNames) {
      await page.click(`#tab-${pane}`);
      await page.waitForTimeout(300);
      expect((await page.textContent("#pane"))?.length, pane).toBeGreaterThan(40);
      await page.evaluate(axe);
      const serious = await page.evaluate<readonly string[]>(seriousFindings);
      expect(serious, pane).toEqual([]);
      expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), pane).toBe(true);
    }
  });

  it("follow tabs by arrow keys", async () => {
    await open();
    await page.focus("#tab-host");
    await page.keyboard.press("ArrowRight");
    expect(await page.getAttribute("#tab-commands", "aria-selected")).toBe("true");
  });

  it("are reached from the editor by Escape and Tab", async () => {
    await open();
    await page.click(".editor.source .cm-content");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.closest('.editor.source')")).toBeNull();
  });

  it("highlight what belongs to the line under the pointer", async () => {
    await open();
    await page.hover('.editor.source .cm-line:has-text("linear(x, w)")');
    await page.waitForSelector(".editor.host .cm-linked");
    expect(await page.textContent(".editor.host .cm-linked")).toMatch(/T\d/u);
    await page.click("#tab-commands");
    await page.hover("tr:has(td.launch) >> nth=0");
    await page.waitForSelector(".editor.source .cm-linked");
    expect(await page.textContent(".editor.source .cm-linked")).toContain("linear(x, w)");
  });
});

describe("examples", () => {
  it("all verify", async () => {
    await open();
    const names = await page.locator(".examples strong").allTextContents();
    expect(names.length).toBeGreaterThan(15);
    for (const name of names.slice(1)) {
      await page.click(".menu summary");
      await page.click(`.examples strong:text-is("${name}")`);
      await page.waitForSelector(`.file:text-is("examples/${name}.ts")`);
      await page.waitForTimeout(30);
      expect(await verdict(), name).toBe("Verified");
    }
  }, 180_000);
});

describe("controls", () => {
  it("compile anew, and say what a field expects", async () => {
    await open();
    await page.click("#tab-streams");
    await page.click('summary:has-text("Lowering options")');
    await page.fill('.field:has(.name:text-is("streams")) input', "2");
    await settled();
    await page.waitForFunction(`document.querySelectorAll(".lane-name").length === 3`);
    await page.fill('.field:has(.name:text-is("streams")) input', "x");
    await page.waitForSelector(".problem");
    expect(await page.textContent(".problem")).toContain("whole number");
    expect(await verdict()).toBe("Not compiled");
    await page.click("[aria-label=Undo]");
    await page.waitForSelector(".verdict.ok");
  });
});

describe("rates and the seed", () => {
  it("change the prediction, the command line, and nothing of the program", async () => {
    await open();
    const predicted = async (): Promise<number> =>
      Number.parseFloat((await page.textContent('.figures div:has-text("predicted") dd')) ?? "");
    const usual = await predicted();
    const host = await page.textContent(".editor.host");
    await page.click('summary:has-text("Rates and seed")');
    await page.focus('[aria-label="link rate"]');
    for (let i = 0; i < 4; i++) await page.keyboard.press("ArrowLeft");
    await page.waitForSelector('.name:text-is("link 0.5×")');
    await settled();
    await page.waitForFunction(`!document.querySelector(".figures dd").textContent.startsWith("${usual}")`);
    expect(await predicted()).toBeGreaterThan(usual);
    expect(await page.textContent(".editor.host")).toBe(host);
    await page.click("#tab-timeline");
    await page.click("text=Copy command");
    expect(await page.evaluate<string>("navigator.clipboard.readText()")).toContain("--what-if link=0.5x");
    await page.selectOption('.field:has(.name:text-is("machine")) select', "8xB200");
    await page.waitForFunction(`document.querySelector(".figures div").title.includes("B200")`);
  });
});

describe("a program in TypeScript", () => {
  it("compiles with all that the language has besides JSX", async () => {
    await open();
    await write(
      [
        'import { DeviceMesh, Fusion, program, set, type TensorView } from "braid";',
        'import type * as everything from "braid";',
        "export * as nothing from 'braid';",
        "interface Sizes<T extends number = number> { readonly rows?: T; [name: string]: T | undefined }",
        "type Pair = readonly [a: TensorView, b?: TensorView]; enum Axis { Rows, Columns } declare const unseen: bigint;",
        "abstract class Names<T> { static #count = 1_0; constructor(protected readonly text: T) {} abstract get(): T; }",
        "class Name extends Names<string> { override get(): string { return this.text as string; } get size() { return 0; } }",
        "const Rows = { few: 8 } as const;",
        "const same = <T,>(value: T): T => value; function is(x: unknown): x is number { return typeof x === 'number'; }",
        "const later = async <T extends object>({ rows = 8 }: T & Sizes): Promise<number> => { try { return rows!; } catch { return 0; } };",
        "export default program({ S: 2 }, ({ devices, params: { S } }) => {",
        "  const sizes: Sizes = { rows: <number>same<number>(Rows.few) } satisfies Sizes; const label = `x ${new Name('a').get()}`;",
        "  loop: for (const axis of [Axis.Rows]) { if (axis || /a\\/[/]b/.test(label)) continue loop; void later; }",
        "  const f = new Fusion(); const x = f.input([sizes?.rows ?? 4], 'float'); const [y]: Pair = [set(x)]; f.output(y);",
        "  x.setDeviceMesh(DeviceMesh.range(devices)); y.outerSplit(Axis['Rows'], is(S) ? S : 1).parallelize('Stream');",
        "  return f; });",
      ].join("\n"),
    );
    expect(await verdict()).toBe("Verified");
  });
});

describe("types", () => {
  it("complete a tensor's methods, and explain a name under the pointer", async () => {
    await open();
    await page.click('.editor.source .cm-line:has-text("f.output(y)")');
    await page.keyboard.press("End");
    await page.waitForTimeout(300);
    await page.keyboard.type("\ny.outer");
    await page.waitForSelector('.cm-completionLabel:has-text("outerSplit")', { timeout: 15_000 });
    expect(requests).toContain("/types-worker.js");
    await page.keyboard.press("Enter");
    expect(await page.textContent('.editor.source .cm-line:has-text("y.outerSplit")')).toContain("y.outerSplit");
    await page.hover('.editor.source .cm-line:has-text("const y = linear(x, w)") >> text=linear');
    await page.waitForSelector(".signature");
    expect(await page.textContent(".signature code")).toContain("TensorView");
  });
});

describe("the border between program and results", () => {
  it("is moved by keys and by the pointer", async () => {
    await open();
    const width = async (): Promise<number> => (await page.locator(".input").boundingBox())?.width ?? 0;
    const usual = await width();
    await page.focus("[role=separator]");
    await page.keyboard.press("ArrowLeft");
    expect(await width()).toBeLessThan(usual);
    await page.mouse.move(await width(), 500);
    await page.mouse.down();
    await page.mouse.move(700, 500);
    await page.mouse.up();
    expect(Math.abs((await width()) - 700)).toBeLessThan(12);
  });
});

describe("a host program without its Wait", () => {
  it("is found, replayed to the wrong read, and repaired", async () => {
    await open();
    await page.click('.editor.host .cm-line:has-text("Wait Communication")');
    await page.keyboard.press("Home");
    await page.keyboard.press("Shift+End");
    await page.keyboard.press("Delete");
    await page.waitForSelector(".verdict.wrong");
    await page.click("text=Replay step by step");
    await page.click("text=Compute at the program's own sizes");
    await page.waitForSelector(`.editor.host .cm-line:has-text("{256}")`);
    expect(await page.textContent(".editor.host")).not.toContain("Wait Communication");
    await page.waitForSelector(".outcome .wrong");
    await page.click("text=Where it goes wrong");
    expect(await page.textContent(".steps [aria-current]")).toContain("launch");
    expect(await page.textContent(".memory .unwritten")).toContain("not written in this run yet");
    expect(await page.textContent(".outcome")).toContain("is wrong");
    expect(await page.locator(".editor.source .cm-linked").count()).toBeGreaterThan(0);
    await page.click("[aria-label='Close the replay']");
    await page.waitForFunction(`document.querySelector(".editor.source .cm-linked") === null`);
    await page.click(".repair button");
    await page.waitForSelector(".verdict.ok");
    expect(await page.textContent(".editor.host")).toContain("Wait Communication");
  });
});

describe("the tour", () => {
  it("leads in six steps from the pipeline to the repair", async () => {
    await open();
    await page.click("text=Tour");
    const titles: string[] = [];
    const verdicts: string[] = [];
    for (let i = 0; i < 6; i++) {
      await settled();
      await page.waitForTimeout(150);
      titles.push((await page.textContent(".tour h3")) ?? "");
      verdicts.push(await verdict());
      if (i === 4) expect(await page.textContent(".repair")).toContain("Add Wait Communication 0");
      await page.click(".tour .primary");
    }
    expect(new Set(titles).size).toBe(6);
    expect(verdicts.map((text) => text === "Verified")).toEqual([true, true, true, false, false, true]);
    expect(await page.locator(".tour").count()).toBe(0);
  });
});

describe("host programs that differ", () => {
  it("are shown side by side", async () => {
    await open();
    await page.click(".menu summary");
    await page.click('.examples strong:text-is("pipeline")');
    await page.selectOption(".toolbar .picker:has-text('beside') select", { index: 1 });
    expect(await page.locator("tr.changed, tr.removed, tr.added").count()).toBeGreaterThan(0);
  });
});

describe("a link", () => {
  it("opens the same program with the same options, and what was open is kept", async () => {
    await open();
    await page.fill('.field:has(.name:text-is("S")) input', "4");
    await page.click("#tab-passes");
    await settled();
    await page.click("text=Copy link");
    const link = await page.evaluate<string>("navigator.clipboard.readText()");
    await page.click("text=Copy command");
    const command = await page.evaluate<string>("navigator.clipboard.readText()");
    expect(command).toContain("npx braid lower examples/allgather-matmul.ts --devices 4 --on cuda");
    expect(command).toContain("--set S=4");
    await context.close();
    await open({ hash: link.slice(link.indexOf("#")) });
    expect(await page.inputValue('.field:has(.name:text-is("S")) input')).toBe("4");
    expect(await page.getAttribute("#tab-passes", "aria-selected")).toBe("true");
    await page.fill('.field:has(.name:text-is("S")) input', "16");
    await page.waitForTimeout(800);
    await page.close();
    await openPage();
    expect(await page.inputValue('.field:has(.name:text-is("S")) input')).toBe("16");
  });
});

describe("a hostile program", () => {
  it.each([
    ["loops for ever", "while (true);", /did not end within/u],
    ["throws", "throw new Error('boom');", /boom/u],
    ["takes all memory", "const all = []; for (;;) all.push(new Float64Array(1e7).fill(1));", /.+/u],
    ["sends messages", "for (;;) postMessage({ kind: 'built', variants: [] });", /postMessage is not defined/u],
    ["connects", "fetch('http://127.0.0.1:9/');", /fetch is not defined/u],
    ["imports a script", "importScripts('http://127.0.0.1:9/x.js');", /importScripts is not defined/u],
  ])("that %s ends with a message, and the page goes on", async (_, body, message) => {
    await open();
    await write(program(body));
    await page.waitForSelector(".verdict.refused", { timeout: 15_000 });
    expect(await page.textContent(".verdict, .findings")).toMatch(/.+/u);
    expect(await page.textContent("#pane")).toMatch(message);
    await write(program(""));
    await page.waitForSelector(".verdict.ok", { timeout: 15_000 });
  });
});

describe("a dump", () => {
  it("of 10 MB with other output around it is compiled like a program", async () => {
    await open();
    await write(program(""));
    await page.waitForSelector(".verdict.ok");
    const text = (await page.locator(".editor.host .cm-line").allTextContents()).join("\n");
    const around = "INFO: a line of a log\n".repeat(230_000);
    await page.click(".menu summary");
    const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.click("text=Open a file")]);
    await chooser.setFiles({
      name: "run.log",
      mimeType: "text/plain",
      buffer: Buffer.from(`${around}${text}\n${around}`),
    });
    await page.waitForSelector('.file:text-is("run.log")');
    await settled();
    await page.waitForSelector(".verdict.ok", { timeout: 30_000 });
  });

  it("with symbolic sizes gets some by a click", async () => {
    await open();
    const name = "e2-allgather-matmul.hir";
    const buffer = readFileSync(path.join(root, "test/fixtures/dumps", name));
    await page.click(".menu summary");
    const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.click("text=Open a file")]);
    await chooser.setFiles({ name, mimeType: "text/plain", buffer });
    await page.click("text=Use these sizes");
    await page.waitForSelector(".verdict.ok", { timeout: 15_000 });
    expect(await page.inputValue('.field:has(.name:text-is("sizes")) input')).toContain("i0=64");
  });

  it("that does not verify has its findings marked in its own text", async () => {
    await open();
    const name = "data-race.hir";
    const buffer = readFileSync(path.join(root, "test/fixtures/findings", name));
    await page.click(".menu summary");
    const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.click("text=Open a file")]);
    await chooser.setFiles({ name, mimeType: "text/plain", buffer });
    await page.waitForSelector(".verdict.wrong");
    await page.waitForSelector(".editor.source .cm-lintRange-error");
    const marked = await page.locator(".editor.source .cm-lintRange-error").allTextContents();
    expect(marked.join("\n")).toMatch(/T2/u);
  });
});
