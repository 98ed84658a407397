/**
 * V8 of Node 20 optimizes functions so early that it compiles many of them again and again, as they meet further kinds
 * of nodes: half of the processor's time of `explain`. Newer ones wait longer by themselves, and print an error for the
 * setting. It is made once the program is loaded, because modules and threads that start later do without what Node has
 * compiled ahead.
 */
import process from "node:process";
import { setFlagsFromString } from "node:v8";

export function optimizeLater(): void {
  if (process.versions.v8.startsWith("11.")) setFlagsFromString("--interrupt-budget=700000");
}
