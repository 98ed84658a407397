/** Tells plans from program files and dumps. It loads nothing of plans. */
import { stat } from "node:fs/promises";
import path from "node:path";

/** Whether FILE of a command line is a plan: a folder with a plan.json, or that file. */
export async function isPlan(file: string): Promise<boolean> {
  if (path.basename(file) === "plan.json") return true;
  const found = await stat(path.join(file, "plan.json")).catch(() => null);
  return found !== null;
}
