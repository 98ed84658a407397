/**
 * Commands with their output in Markdown pages: in a ```console block, `$ ` begins a command and the lines after it are
 * what it prints. A line `...` stands for any lines. Times differ from run to run, so both sides are compared without.
 */
import { fencedBlocks } from "./readme.ts";

export interface ConsoleCommand {
  readonly command: string;
  readonly output: string;
}

export function consoleCommands(page: string): readonly ConsoleCommand[] {
  return fencedBlocks(page, "console").flatMap((block) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((part) => {
        const [command = "", ...output] = part.trimEnd().split("\n");
        return { command, output: output.join("\n") };
      }),
  );
}

/** The text without the parts that differ from run to run: times, and the cells' positions on the time axis. */
export function withoutTimes(text: string): string {
  return text
    .replaceAll(/ +\d+\.\d\d ms/g, " N ms")
    .replaceAll(/\d+ % of communication/g, "N % of communication")
    .replaceAll(/\d+\.\d\d \/ \d+\.\d\d \/ /g, "N / N / ")
    .replaceAll(/(?<= )[kctw.]{20,}(?= )/g, "cells")
    .replaceAll(/^ +0 N ms$/gm, "axis");
}

/** Whether `actual` is what a page shows as `expected`; both without times. */
export function matches(actual: string, expected: string): boolean {
  const escaped = expected.split("\n").map((line) => (line === "..." ? "(?:.*\n)*?.*" : escape(line)));
  return new RegExp(`^${escaped.join("\n")}$`).test(actual);
}

function escape(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);
}
