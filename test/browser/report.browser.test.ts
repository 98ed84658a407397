/** The report page in Chromium: what a reader does with it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { reportPage } from "../../src/cli/report/report-page.ts";
import { cli } from "../cli/captured-cli.ts";
import { launchChromium } from "./chromium.ts";
import { manySlices } from "./many-slices.ts";

const root = path.resolve(import.meta.dirname, "../..");
let folder: string;
/** What `braid explain` printed beside its report. */
let told: string;
let browser: Browser;
let page: Page;
const complaints: string[] = [];

const file = (name: string): string => path.join(folder, name);

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "braid-report-"));
  browser = await launchChromium();
  const example = path.join(root, "examples/allgather-matmul.ts");
  const explained = await cli(
    "explain",
    "--schedule",
    "as-written",
    example,
    "--devices",
    "4",
    "--profile",
    "4xH200",
    ...["M=16384", "K=8192", "N=4096", "DTYPE=bfloat16"].flatMap((size) => ["--set", size]),
    "--report",
    file("explain.html"),
  );
  told = explained.out;
  const racing = path.join(root, "test/fixtures/findings/data-race.hir");
  const verified = await cli("verify", racing, "--report", file("race.html"));
  const unmatched = path.join(root, "test/fixtures/findings/transfer-mismatch.hir");
  expect((await cli("verify", unmatched, "--report", file("unmatched.html"))).status).toBe(1);
  const proven = await cli("verify", example, "--devices", "2", "--report", file("proven.html"));
  expect([explained.status, verified.status, proven.status]).toEqual([0, 1, 0]);
});
afterAll(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});
afterEach(async () => {
  await page.close();
  expect(complaints.splice(0)).toEqual([]);
});

async function open(
  name: string,
  {
    dark = false,
    width = 1280,
    height = 900,
    hasTimeline = true,
  }: {
    readonly dark?: boolean;
    readonly width?: number;
    readonly height?: number;
    readonly hasTimeline?: boolean;
  } = {},
): Promise<number> {
  page = await browser.newPage({ viewport: { width, height }, colorScheme: dark ? "dark" : "light" });
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    if (!/^(file|blob|data):/.test(request.url())) complaints.push(`request: ${request.url()}`);
  });
  const start = performance.now();
  await page.goto(pathToFileURL(file(name)).href);
  await page.locator("html[data-ready=true]").waitFor({ timeout: 20_000 });
  if (hasTimeline) await page.locator(".br-timeline[data-from]").waitFor({ timeout: 20_000 });
  return performance.now() - start;
}

/** The stretch of time in view. */
async function view(): Promise<{ readonly from: number; readonly until: number }> {
  // A frame draws it.
  await page.waitForTimeout(150);
  const [from, until] = await Promise.all(
    ["data-from", "data-until"].map((name) => page.locator(".br-timeline").getAttribute(name)),
  );
  return { from: Number(from), until: Number(until) };
}

async function canvasBox(): Promise<{ x: number; y: number; width: number; height: number }> {
  const box = await page.locator(".br-canvas").boundingBox();
  if (box === null) throw new Error("the canvas is not shown");
  return box;
}

/** Moves the pointer over the first rows until a tooltip shows. */
async function hoverSlice(): Promise<void> {
  const { x, y, width } = await canvasBox();
  for (let row = 34; row < 140; row += 20) {
    for (let part = 1; part < 12; part++) {
      await page.mouse.move(x + (part * width) / 12, y + row);
      if (await page.locator(".br-card").isVisible()) return;
    }
  }
  throw new Error("no slice is under the pointer");
}

const pixels = (): Promise<string> => page.evaluate<string>("document.querySelector('.br-canvas').toDataURL()");

describe("the report page", () => {
  it("opens from disk without an error or a request, and shows verdict, tables and host program", async () => {
    await open("explain.html");
    await expect(page.locator("h1").innerText()).resolves.toMatch(/predicted on 4 devices/);
    await expect(page.locator("h2").allInnerTexts()).resolves.toEqual([
      "Timeline",
      "Why time is exposed",
      "What to change",
      "What moves between devices",
      "Regions",
      "Host program",
    ]);
    await expect(page.locator(".br-line").count()).resolves.toBeGreaterThan(10);
    await expect(page.locator(".br-label-rank").count()).resolves.toBe(4);
  });

  it("says what to change as the command line does, and what moves; the host program is folded", async () => {
    await open("explain.html", { height: 800 });
    const section = (title: string) =>
      page.locator("section.br-panel").filter({ has: page.getByRole("heading", { name: title }) });
    const lines = told.split("\n");
    const changes = lines.slice(lines.indexOf("to change:") + 1, lines.indexOf("to change:") + 4);
    const rows = await section("What to change").locator("tbody tr").allInnerTexts();
    expect(rows.length).toBeGreaterThan(0);
    for (const [i, line] of changes.entries()) {
      if (!line.startsWith("  ")) break;
      const [, gain, time, flags] = /^ {2}(.+), (.+? [a-z]+) +(--.+)$/.exec(line) ?? [];
      expect(rows[i]).toBe(`${flags}\t${time}\t${gain}`);
    }
    await expect(section("What moves between devices").locator("tbody tr").allInnerTexts()).resolves.toEqual([
      expect.stringMatching(/^(?:T0|x)\tAllgather\tDIDx\tyes\t201,326,592\t/),
    ]);
    await expect(page.locator(".br-bad-fact").count()).resolves.toBe(0);
    const host = page.locator(".br-host");
    await expect(host.getAttribute("open")).resolves.toBeNull();
    const [whole, timeline] = await Promise.all([host.boundingBox(), page.locator(".br-panel").first().boundingBox()]);
    expect(whole?.width).toBe(timeline?.width);
    const causes = await section("Why time is exposed").boundingBox();
    expect(causes?.y).toBeLessThan(800);
    const cut = await page.evaluate<readonly string[]>(
      "[...document.querySelectorAll('.br-wide')].filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.ariaLabel)",
    );
    expect(cut).toEqual([]);
  });

  it("zooms and moves by keys, wheel and drag, and shows everything again", async () => {
    await open("explain.html");
    const all = await view();
    await page.keyboard.press("w", { delay: 200 });
    const near = await view();
    expect(near.until - near.from).toBeLessThan(0.95 * (all.until - all.from));
    await page.keyboard.press("d", { delay: 200 });
    const right = await view();
    expect(right.from).toBeGreaterThan(near.from);
    await page.keyboard.press("ArrowLeft", { delay: 200 });
    expect((await view()).from).toBeLessThan(right.from);
    await page.keyboard.press("s", { delay: 900 });
    await page.keyboard.press("0");
    expect(await view()).toEqual(all);
    const { x, y, width } = await canvasBox();
    await page.mouse.move(x + width / 2, y + 40);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -300);
    await page.keyboard.up("Control");
    const wheeled = await view();
    expect(wheeled.until - wheeled.from).toBeLessThan(0.9 * (all.until - all.from));
    await page.mouse.down();
    await page.mouse.move(x + width / 2 + 120, y + 40, { steps: 4 });
    await page.mouse.up();
    expect((await view()).from).toBeLessThan(wheeled.from);
    await page.getByRole("button", { name: "Show all" }).click();
    expect(await view()).toEqual(all);
  });

  it("highlights a cause, and a region, and zooms to it; Esc clears", async () => {
    await open("explain.html");
    const all = await view();
    const before = await pixels();
    const cause = page.getByRole("button", { name: "first chunk" });
    await cause.click();
    const first = await view();
    expect(first.until - first.from).toBeLessThan(0.5 * (all.until - all.from));
    await expect(cause.getAttribute("aria-pressed")).resolves.toBe("true");
    expect(await pixels()).not.toBe(before);
    await page.getByRole("button", { name: "Clear highlight" }).click();
    await expect(cause.getAttribute("aria-pressed")).resolves.toBe("false");
    await page.locator("section", { hasText: "Regions" }).last().locator(".br-link").first().click();
    await expect(page.locator(".br-chosen").count()).resolves.toBe(1);
    await page.keyboard.press("Escape");
    await expect(page.locator(".br-chosen").count()).resolves.toBe(0);
  });

  it("shows a slice's figures at the pointer, its arrows, and its line; a line shows its slices", async () => {
    await open("explain.html");
    await view();
    const before = await pixels();
    await hoverSlice();
    await expect(page.locator(".br-card").innerText()).resolves.toMatch(/rank 0[\s\S]*µs from/);
    await expect(page.locator(".br-line.br-marked").count()).resolves.toBe(1);
    await view();
    expect(await pixels()).not.toBe(before);
    await page.mouse.move(2, 2);
    await expect(page.locator(".br-card").isVisible()).resolves.toBe(false);
    await view();
    expect(await pixels()).toBe(before);
    await page.locator(".br-host summary").click();
    await page.locator(".br-line.br-issued").first().hover();
    await view();
    expect(await pixels()).not.toBe(before);
  });

  it("goes from slice to slice by keys, in words", async () => {
    await open("explain.html");
    await page.keyboard.press(".");
    const first = await page.locator(".br-spoken").innerText();
    await page.keyboard.press(".");
    const second = await page.locator(".br-spoken").innerText();
    expect(first).toMatch(/rank 0/);
    expect(second).not.toBe(first);
  });

  it("folds a rank", async () => {
    await open("explain.html");
    const rows = await page.locator(".br-label").count();
    await page.getByRole("button", { name: "rank 1" }).click();
    expect(await page.locator(".br-label").count()).toBeLessThan(rows);
  });

  it("shows a finding on the timeline of its counterexample", async () => {
    await open("race.html");
    await page.getByRole("button", { name: /a write and a read of T1/ }).click();
    await expect(page.locator("select").first().inputValue()).resolves.toBe("1");
    await expect(page.locator(".br-chosen").count()).resolves.toBe(1);
    await expect(page.getByRole("heading", { name: "Repair" }).count()).resolves.toBe(1);
    await expect(page.locator(".br-fix").innerText()).resolves.toMatch(/^Fix Synchronize worker 0 on worker 1/);
    await expect(page.locator(".br-finding pre").first().innerText()).resolves.not.toMatch(/fix:/);
    // Its lines are those of the host program, which is therefore open.
    await expect(page.locator(".br-line").first().isVisible()).resolves.toBe(true);
  });

  it("shows a finding of a program that cannot run without a timeline, in its own colours", async () => {
    await open("unmatched.html", { hasTimeline: false });
    expect(await page.locator("h1").innerText()).toBe("1 finding: the program is wrong");
    expect(await page.locator("section[aria-label=Timeline]").count()).toBe(0);
    const panel = "document.querySelector('.br-panel')";
    expect(await page.evaluate<string>(`getComputedStyle(${panel}).backgroundColor`)).toBe("rgb(255, 255, 255)");
  });

  it("puts the cells of a row under each other on a narrow screen", async () => {
    await open("explain.html", { width: 390 });
    const because = page.getByRole("region", { name: "What moves between devices" }).locator("td").last();
    expect(await because.innerText()).toContain("needs it");
    const box = await because.boundingBox();
    expect((box?.x ?? 390) + (box?.width ?? 0)).toBeLessThanOrEqual(390);
  });

  it("folds a long list of streams until it is opened", async () => {
    await open("proven.html");
    const streams = page.getByRole("region", { name: "Streams" });
    await expect(streams.isVisible()).resolves.toBe(false);
    await page.getByText(/^Show \d+ rows$/).click();
    await expect(streams.isVisible()).resolves.toBe(true);
  });

  it("says what was proven", async () => {
    await open("proven.html");
    await expect(page.locator("h1").innerText()).resolves.toMatch(/^Verified/);
    await expect(page.getByRole("heading", { name: "What was proven" }).count()).resolves.toBe(1);
  });

  it.each(["explain.html", "race.html", "proven.html"])(
    "%s: axe finds nothing serious, light and dark",
    async (name) => {
      for (const dark of [false, true]) {
        await open(name, { dark });
        await page.addScriptTag({ content: axe.source });
        const { violations } = await page.evaluate<{
          readonly violations: readonly {
            readonly id: string;
            readonly impact: string;
            readonly nodes: readonly { html: string }[];
          }[];
        }>("axe.run()");
        const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
        expect(serious.map(({ id, nodes }) => [id, nodes.map(({ html }) => html.slice(0, 200))])).toEqual([]);
        if (!dark) await page.close();
      }
    },
  );

  it.each([1280, 800, 390])("fits %d pixels", async (width) => {
    await open("explain.html", { width });
    expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
    const { x, width: drawn } = await canvasBox();
    expect(x + drawn).toBeLessThanOrEqual(width);
  });
});

describe("a long run", () => {
  it("of 200,000 commands opens in under 2 s", async () => {
    writeFileSync(file("many.html"), (await reportPage(manySlices(8, 25_000))).join(""));
    // The first page of a browser also starts a process.
    await open("proven.html");
    await page.close();
    expect(await open("many.html")).toBeLessThan(2000);
  });

  it("of 8 ranks x 200,000 commands redraws at interactive speed at every zoom", async () => {
    writeFileSync(file("most.html"), (await reportPage(manySlices(8, 200_000))).join(""));
    await open("most.html");
    await page.keyboard.press("w", { delay: 300 });
    /** The median of the times between frames while a key is held, in milliseconds. */
    const frames = async (key: string): Promise<number> => {
      await page.evaluate(
        "window.times = []; (function next(t) { window.times.push(t); window.run = requestAnimationFrame(next); })(performance.now())",
      );
      // As a key that is held repeats.
      for (let i = 0; i < 45; i++) {
        await page.keyboard.down(key);
        await page.waitForTimeout(33);
      }
      await page.keyboard.up(key);
      const times = await page.evaluate<readonly number[]>("(cancelAnimationFrame(window.run), window.times)");
      const gaps = times.slice(1).map((time, i) => time - (times[i] ?? 0));
      return gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)] ?? Infinity;
    };
    expect(await frames("d")).toBeLessThan(100);
    expect(await frames("w")).toBeLessThan(100);
    await page.getByRole("button", { name: "link-bound" }).click();
    await page.keyboard.press("0");
    expect(await frames("a")).toBeLessThan(100);
  });
});
