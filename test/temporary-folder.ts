/** All tests put temporary files into one folder, which is removed at the end: failed runs leave flight records. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";

export default function setup(): () => void {
  const folder = mkdtempSync(path.join(tmpdir(), "braid-tests-"));
  process.env["TMPDIR"] = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}
