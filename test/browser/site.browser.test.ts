/** The built site in Chromium: a page is found by the search, and its program opens in the playground. */
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import path from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launchChromium } from "./chromium.ts";

const folder = path.resolve(import.meta.dirname, "../../dist/site");
const types: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
let browser: Browser;
let server: Server;
let address: string;

/** As any static host: no headers of ours. */
beforeAll(async () => {
  browser = await launchChromium();
  server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://127.0.0.1");
    const file = path.join(folder, pathname.replace(/\/$/u, "/index.html"));
    void readFile(file).then(
      (content) => response.setHeader("Content-Type", types[path.extname(file)] ?? "text/plain").end(content),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  address = `http://127.0.0.1:${typeof bound === "object" && bound !== null ? bound.port : ""}/`;
});
afterAll(async () => {
  await browser.close();
  server.closeAllConnections();
  server.close();
});

it("finds a page by its words, whose program opens in the playground", async () => {
  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(`${page.url()}: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!/^(?:blob|data):/u.test(request.url()) && !request.url().startsWith(address)) complaints.push(request.url());
  });
  await page.goto(address);
  expect(await page.textContent("h1")).toBe("Braid");
  await page.click("#tsd-search-trigger");
  await page.fill("#tsd-search-input", "counterexample");
  await page.click('#tsd-search-results a:has-text("Verifier")');
  await page.waitForURL(/verifier\.html/u);
  const link = page.getByRole("link", { name: "Open in the playground" }).first();
  const program = new URL((await link.getAttribute("href")) ?? "", page.url()).href;
  await link.click();
  await page.waitForSelector(".verdict.wrong", { timeout: 15_000 });
  expect(await page.textContent(".file")).toBe("verifier.hir");
  await page.goto(`${address}playground/index.html#example=%6Dlp`);
  // The page stays: it follows the link in its address.
  await page.waitForSelector('.file:text-is("examples/mlp.ts")');
  await page.waitForSelector(".verdict.ok", { timeout: 15_000 });
  await page.goto(program);
  await page.waitForSelector('.file:text-is("verifier.hir")');
  expect(complaints).toEqual([]);
  await page.close();
});
