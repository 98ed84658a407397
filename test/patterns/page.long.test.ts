/** The commands of docs/patterns.md work as printed, and predict what its table says. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import { cli } from "../cli/captured-cli.ts";
import { rowsOfPage } from "./page-rows.ts";

const page = readFileSync(path.resolve(import.meta.dirname, "../../docs/patterns.md"), "utf8");
const commands = [...page.matchAll(/^ {4}npx braid (.*)$/gmu)].map(([, text = ""]) => text);

it.each(commands.filter((text) => !text.includes(".hir")))("braid %s", async (text) => {
  const { status, err } = await cli(...text.split(" "));
  expect([status, err]).toEqual([0, ""]);
});

it("the line that sed deletes is the fault", async () => {
  const lower = commands.find((text) => text.startsWith("lower"))?.split(" > ")[0] ?? "";
  const { out } = await cli(...lower.split(" "));
  const [, line = ""] = /^ {4}sed (\d+)d /mu.exec(page) ?? [];
  const folder = mkdtempSync(path.join(tmpdir(), "braid-tests-"));
  try {
    const file = path.join(folder, "broken.hir");
    writeFileSync(
      file,
      out
        .split("\n")
        .toSpliced(Number(line) - 1, 1)
        .join("\n"),
    );
    const found = await cli("verify", file);
    expect(found.status).toBe(1);
    expect(found.out.startsWith("error[data-race]")).toBe(true);
    expect(found.out).toContain(`add \`Synchronize Stream 0\` after line ${Number(line) - 1}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/** How far a prediction may be from the page before the page is wrong, in points and in times. */
const near = { hidden: 5, serial: 0.05 };

it.each(rowsOfPage("moves under kernels"))("%s is predicted as on the page", async (link, _, sizes, figures) => {
  const file = /\((?:\.\.\/)(.*)\)/u.exec(link)?.[1] ?? "";
  const given = sizes.split(" ").flatMap((size) => ["--set", size]);
  const machine = ["--devices", "4", "--on", "cuda", "--profile", "4xH200"];
  const { status, out } = await cli("explain", file, ...machine, ...given);
  expect(status).toBe(0);
  const [hidden, serial] = [/; ([\d.]+) % of communication hidden/u, /, ([\d.]+) times as long/u].map((figure) =>
    Number(figure.exec(out)?.[1]),
  );
  const [, shownHidden, shownSerial] = /^([\d.]+) %(?:, ([\d.]+)x)?$/u.exec(figures) ?? [];
  expect(Math.abs(Number(shownHidden) - Number(hidden))).toBeLessThanOrEqual(near.hidden);
  expect(shownSerial === undefined).toBe(Number.isNaN(serial));
  if (shownSerial !== undefined)
    expect(Math.abs(Number(shownSerial) - Number(serial))).toBeLessThanOrEqual(near.serial);
});
