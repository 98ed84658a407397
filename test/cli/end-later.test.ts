/** A process whose main thread is blocked ends by another thread. */
import path from "node:path";
import process from "node:process";
import { describe, expect, it } from "vitest";
import { exitStatus } from "../../src/cli/exit-status.ts";
import { endOf } from "../mpi/under-mpi.ts";

const jiti = path.resolve(import.meta.dirname, "../../node_modules/jiti/lib/jiti-cli.mjs");
const file = path.resolve(import.meta.dirname, "end-later-process.ts");

describe("endLater", () => {
  it("says the words and ends a blocked process with the status", async () => {
    expect(await endOf(process.execPath, [jiti, file, "blocked"])).toEqual({
      status: exitStatus.runFailed,
      out: "",
      err: "too late\n",
    });
  });

  it("does nothing once it is called off", async () => {
    expect(await endOf(process.execPath, [jiti, file, "called off"])).toEqual({ status: 0, out: "", err: "" });
  });
});
