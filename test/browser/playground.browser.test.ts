/** The built playground in Chromium: panes, controls, breaking and repairing, sharing, and hostile programs. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { gzipSync } from "node:zlib";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Serving, serveFolder } from "../../src/cli/playground/command.ts";
import { type PaneName, paneNames } from "../../playground/model/state.ts";
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
  readonly height?: number;
  readonly hash?: string;
  readonly pane?: PaneName;
}

async function open({ dark = false, width = 1280, height = 900, hash = "", pane }: Opening = {}): Promise<void> {
  context = await browser.newContext({
    viewport: { width, height },
    colorScheme: dark ? "dark" : "light",
    permissions: ["clipboard-read", "clipboard-write"],
  });
  await openPage(hash);
  if (pane !== undefined) await page.click(`#tab-${pane}`);
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

async function openExample(name: string): Promise<void> {
  await page.click(".menu summary");
  await page.click(`.examples strong:text-is("${name}")`);
  await page.waitForSelector(`.file:text-is("examples/${name}.ts")`);
  await page.waitForTimeout(30);
  await settled();
}

async function openFile(name: string, buffer: Buffer): Promise<void> {
  await page.click(".menu summary");
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.click("text=Open a file")]);
  await chooser.setFiles({ name, mimeType: "text/plain", buffer });
}

/** The input of a field of the program or of an option. */
const field = (name: string): string => `.field:has(.name:text-is("${name}")) input`;

/** Replaces the whole program, as pasting does. */
async function write(text: string): Promise<void> {
  await page.click(".editor.source .cm-content");
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(text);
  await page.waitForTimeout(50);
}

const program = (body: string): string =>
  `import { DeviceMesh, Fusion, program, set } from "@braid-compiler/braid";\nexport default program({ S: 2 }, ({ devices, params: { S } }) => {\n${body}\n  const f = new Fusion();\n  const x = f.input([8], "float");\n  const y = set(x);\n  f.output(y);\n  x.setDeviceMesh(DeviceMesh.range(devices));\n  y.outerSplit(0, S).parallelize("Stream");\n  return f;\n});\n`;

describe("the first load", () => {
  it("is below 500 KB and shows a verified program", async () => {
    await open();
    expect(await verdict()).toBe("Verified");
    const loaded = [...new Set(requests)].filter((name) => name !== "/");
    // The two chunks have what models opened later need too.
    expect(loaded.toSorted()).toEqual([
      "/chunks/invariant.js",
      "/chunks/wording.js",
      "/page.css",
      "/page.js",
      "/worker.js",
    ]);
    const sizes = ["index.html", ...loaded].map((name) => gzipSync(readFileSync(path.join(folder, name))).length);
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(498_000);
  });
});

describe("a first visit at 1280 x 800", () => {
  it("opens on the Fusion, with every annotation of the program in view", async () => {
    await open({ height: 800 });
    expect(await page.getAttribute("#tab-fusion", "aria-selected")).toBe("true");
    expect(await page.textContent(".editor.source .cm-folded")).toMatch(/^ Allgather, then matmul, as a/u);
    const bottom = await page.evaluate<number>(
      "document.querySelector('.editor.source').getBoundingClientRect().bottom",
    );
    const last = page.locator('.editor.source .cm-line:has-text("Stream")').last();
    const box = await last.boundingBox();
    expect((box?.y ?? Infinity) + (box?.height ?? 0)).toBeLessThanOrEqual(bottom);
    const moved = await page.locator('#pane table:has-text("Allgather")').boundingBox();
    expect((moved?.y ?? Infinity) + (moved?.height ?? 0)).toBeLessThanOrEqual(800);
    await page.click(".cm-folded");
    expect(await page.textContent(".editor.source .cm-content")).toContain(
      "npx braid run examples/allgather-matmul.ts",
    );
  });

  it("folds long imports of other examples, too", async () => {
    await open({ height: 800 });
    await openExample("transformer/ring-attention");
    expect(await page.locator(".editor.source .cm-folded").allTextContents()).toEqual([
      " Ring attention: every device has a block of … ",
      expect.stringMatching(/^ \d+ names $/u),
    ]);
  });

  it("cuts no label of the timeline", async () => {
    await open({ height: 800 });
    await page.evaluate(
      "window.texts = new Set(); const draw = CanvasRenderingContext2D.prototype.fillText; CanvasRenderingContext2D.prototype.fillText = function (text, x, y) { window.texts.add(text); draw.call(this, text, x, y); }",
    );
    await page.click("#tab-timeline");
    await page.waitForSelector(".br-timeline[data-from]");
    await page.waitForTimeout(300);
    const texts = await page.evaluate<readonly string[]>("[...window.texts]");
    expect(texts).toContain("AG 0");
    expect(texts.filter((text) => text.includes("…"))).toEqual([]);
    expect(await page.textContent(".br-legend")).toContain("library or peer kernel");
    expect(await page.locator(".br-label-track").first().getAttribute("title")).toBe("caller");
    // The causes begin above the fold.
    const cause = await page.locator(".causes tr").first().boundingBox();
    expect((cause?.y ?? Infinity) + (cause?.height ?? 0)).toBeLessThanOrEqual(800);
  });
});

describe("another program", () => {
  it("that is pasted has its own sizes and no old name; undo brings back those of the one before", async () => {
    await open();
    expect(await page.inputValue(field("M"))).toBe("16384");
    await write(program("").replace("S: 2", "S: 2, M: 8, K: 4"));
    await page.waitForSelector(`.field:has(.name:text-is("K")) [placeholder="4"]`);
    expect(await page.inputValue(field("M"))).toBe("");
    expect(await page.textContent(".menu .file")).toBe("untitled.ts");
    expect(await page.locator(".field:has(.name:text-is('N'))").count()).toBe(0);
    await page.keyboard.press("Control+Z");
    await page.waitForSelector('.file:text-is("examples/allgather-matmul.ts")');
    await settled();
    expect(await page.inputValue(field("M"))).toBe("16384");
  });

  it("that is pasted as a dump is one", async () => {
    await open();
    await write(readFileSync(path.join(root, "test/fixtures/findings/data-race.hir"), "utf8"));
    await page.waitForSelector(".verdict.wrong");
    expect(await page.textContent(".menu .file")).toBe("untitled.hir");
    expect(await page.getAttribute("#tab-host", "aria-selected")).toBe("true");
    expect(await page.locator(".fields.main .field").count()).toBe(2);
  });

  it("that does not compile shows nothing of the one before; an edit that does not, what was before it", async () => {
    await open();
    await write("export default 1;");
    await page.waitForSelector(".verdict.refused");
    await settled();
    for (const pane of ["fusion", "passes", "host", "commands", "streams", "timeline"]) {
      await page.click(`#tab-${pane}`);
      expect(await page.textContent("#pane"), pane).toContain("nothing to show until the program compiles");
    }
    await page.click("#tab-fusion");
    await write(program(""));
    await page.waitForSelector(".verdict.ok");
    await page.click('.editor.source .cm-line:has-text("return f")');
    await page.keyboard.type(" +");
    await page.waitForSelector(".stale");
    expect(await page.locator(".pictures .card").count()).toBe(2);
  });

  it("has a size from its text once that is changed there, and is marked as edited", async () => {
    await open();
    expect(await page.textContent(".fields.main .field:has(.name:text-is('M'))")).toContain("program: 1536");
    await page.dblclick(".editor.source .cm-line span:text-is('1536')");
    await page.keyboard.type("3072");
    await page.waitForSelector(`${field("M")}[placeholder="3072"]`);
    expect(await page.inputValue(field("M"))).toBe("");
    expect(await page.inputValue(field("K"))).toBe("8192");
    expect(await page.textContent(".menu summary")).toContain("edited");
  });
});

describe("what is bad", () => {
  it("is marked beside the verdict: a program that is slower than its serial form", async () => {
    await open();
    expect(await page.locator(".figures .bad").count()).toBe(0);
    await openExample("allreduce");
    expect(await verdict()).toBe("Verified");
    expect(await page.textContent(".figures .bad >> nth=0")).toMatch(/speedup0\.\d+×/u);
    expect(await page.textContent(".verdict .detail")).toMatch(/^\d+ % slower than without chunks$/u);
    await page.click(".verdict .detail");
    expect(await page.getAttribute("#tab-timeline", "aria-selected")).toBe("true");
  });
});

describe("what to change", () => {
  it("is what braid explain prints, and is set by a click", async () => {
    await open({ pane: "timeline" });
    const change = page.locator(".changes tr").first();
    await change.waitFor();
    expect(await change.textContent()).toMatch(/^--backend cuda\d\.\d\d ms\d+\.\d % faster$/u);
    const predicted = page.locator('.figures div:has-text("predicted") dd');
    const [slow, fast] = [await predicted.textContent(), await change.locator("td").first().textContent()];
    await change.locator("button").click();
    await page.waitForFunction(`document.querySelector(".figures dd").textContent === "${fast}"`);
    expect(slow).not.toBe(fast);
    await page.click("text=Copy command");
    expect(await page.evaluate<string>("navigator.clipboard.readText()")).toContain("--backend cuda");
  });
});

describe("a mistake", () => {
  const typo = program("").replace("set(x)", "sett(x)");

  it("in a name stands under its line in every pane, with a button that mends it", async () => {
    await open();
    await write(typo);
    for (const pane of paneNames) {
      await page.click(`#tab-${pane}`);
      const message = page.locator(".editor.source .cm-line:has-text('sett(x)') + .cm-message-row");
      await message.waitFor();
      expect(await message.textContent(), pane).toMatch(/sett is not defined.*did you mean set\?/su);
      expect(await page.textContent(".verdict .detail"), pane).toBe("line 6: ReferenceError: sett is not defined");
    }
    await page.click("text=Replace sett by set");
    await page.waitForSelector(".verdict.ok");
    expect(await page.locator(".cm-message").count()).toBe(0);
  });

  it("in a method's name or in syntax has its line; an annotation, too", async () => {
    await open();
    for (const [wrong, line, message] of [
      [program("").replace("y.outerSplit", "y.outersplit"), "y.outersplit", /did you mean outerSplit/u],
      [program("").replace("set(x);", "set(x;"), "set(x;", /SyntaxError/u],
      [program("").replace("outerSplit(0,", "outerSplit(3,"), "outerSplit(3,", /axis 3 does not exist/u],
    ] as const) {
      await write(wrong);
      const found = page.locator(`.editor.source .cm-line:has-text("${line}") + .cm-message-row`);
      await found.waitFor();
      expect(await found.textContent()).toMatch(message);
    }
  });

  it("far from what is in view is reached from the verdict", async () => {
    await open();
    await write(`${"\n".repeat(80)}${typo}`);
    await page.waitForSelector(".verdict.refused");
    await page.keyboard.press("Control+Home");
    await page.waitForTimeout(500);
    await page.click(".verdict .detail");
    await page.locator(".editor.source .cm-message").waitFor();
  });

  it("in an edited host program stands in that, and not in the program", async () => {
    await open({ pane: "host" });
    await page.click('.editor.host .cm-line:has-text("Wait Communication")');
    await page.keyboard.press("Home");
    await page.keyboard.type("Weit ");
    await page.locator(".editor.host .cm-line:has-text('Weit') + .cm-message-row").waitFor();
    expect(await page.locator(".editor.source .cm-message").count()).toBe(0);
    expect(await page.textContent(".verdict .detail")).toMatch(/^rank 0, line \d+: /u);
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
    await open({ pane: "host" });
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
    await open({ pane: "host" });
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
      await openExample(name);
      expect(await verdict(), name).toBe("Verified");
    }
  }, 180_000);
});

describe("controls", () => {
  it("compile anew, and say what a field expects", async () => {
    await open();
    await page.click("#tab-streams");
    await page.click('summary:has-text("Lowering options")');
    await page.fill(field("streams"), "2");
    await settled();
    await page.waitForFunction(`document.querySelectorAll(".lane-name").length === 3`);
    await page.fill(field("streams"), "x");
    await page.waitForSelector(".problem");
    expect(await page.textContent(".problem")).toContain("whole number");
    expect(await verdict()).toBe("Not compiled");
    await page.click("[aria-label=Undo]");
    await page.waitForSelector(".verdict.ok");
  });
});

describe("rates and the seed", () => {
  it("change the prediction, the command line, and nothing of the program", async () => {
    await open({ pane: "host" });
    const predicted = async (): Promise<number> =>
      Number.parseFloat((await page.textContent('.figures div:has-text("predicted") dd')) ?? "");
    const usual = await predicted();
    // The editor is empty in the frame that it is made in.
    await page.waitForSelector(".editor.host .cm-line:has-text('Communication')");
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
        'import { DeviceMesh, Fusion, program, set, type TensorView } from "@braid-compiler/braid";',
        'import type * as everything from "@braid-compiler/braid";',
        "export * as nothing from '@braid-compiler/braid';",
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
    await open({ pane: "host" });
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
    await open({ pane: "host" });
    await openExample("pipeline");
    await page.selectOption(".toolbar .picker:has-text('beside') select", { index: 1 });
    expect(await page.locator("tr.changed, tr.removed, tr.added").count()).toBeGreaterThan(0);
  });
});

describe("a link", () => {
  it("opens the same program with the same options, and what was open is kept", async () => {
    await open();
    await page.fill(field("S"), "4");
    await page.click("#tab-passes");
    await settled();
    await page.click("text=Copy link");
    await page.waitForSelector('[role="status"]:text-is("Copy link: copied")', { state: "attached" });
    const link = await page.evaluate<string>("navigator.clipboard.readText()");
    await page.click("text=Copy command");
    const command = await page.evaluate<string>("navigator.clipboard.readText()");
    expect(command).toContain("npx braid lower examples/allgather-matmul.ts --devices 4 --on cuda");
    expect(command).toContain("--set S=4");
    await context.close();
    await open({ hash: link.slice(link.indexOf("#")) });
    expect(await page.inputValue(field("S"))).toBe("4");
    expect(await page.getAttribute("#tab-passes", "aria-selected")).toBe("true");
    await page.fill(field("S"), "16");
    await page.waitForTimeout(800);
    await page.close();
    await openPage();
    expect(await page.inputValue(field("S"))).toBe("16");
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
    expect(await page.textContent(".cm-message")).toMatch(message);
    await write(program(""));
    await page.waitForSelector(".verdict.ok", { timeout: 15_000 });
  });
});

describe("a dump", () => {
  it("of 10 MB with other output around it is compiled like a program", async () => {
    await open({ pane: "host" });
    await write(program(""));
    expect(await verdict()).toBe("Verified");
    const text = (await page.locator(".editor.host .cm-line").allTextContents()).join("\n");
    const around = "INFO: a line of a log\n".repeat(230_000);
    await openFile("run.log", Buffer.from(`${around}${text}\n${around}`));
    await page.waitForSelector('.file:text-is("run.log")');
    await settled();
    await page.waitForSelector(".verdict.ok", { timeout: 30_000 });
  });

  it("with symbolic sizes gets some by a click", async () => {
    await open();
    const name = "e2-allgather-matmul.hir";
    await openFile(name, readFileSync(path.join(root, "test/fixtures/dumps", name)));
    await page.click("text=Use these sizes");
    await page.waitForSelector(".verdict.ok", { timeout: 15_000 });
    expect(await page.inputValue(field("sizes"))).toContain("i0=64");
  });

  it("that does not verify has its findings marked in its own text", async () => {
    await open();
    const name = "data-race.hir";
    await openFile(name, readFileSync(path.join(root, "test/fixtures/findings", name)));
    await page.waitForSelector(".verdict.wrong");
    await page.waitForSelector(".editor.source .cm-lintRange-error");
    const marked = await page.locator(".editor.source .cm-lintRange-error").allTextContents();
    expect(marked.join("\n")).toMatch(/T2/u);
  });
});
