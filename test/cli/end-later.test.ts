/** A process whose main thread is blocked ends by another thread. */
import process from "node:process";
import { describe, expect, it } from "vitest";
import { exitStatus } from "../../src/cli/exit-status.ts";
import { endOf } from "../mpi/under-mpi.ts";
import { nodeScript } from "../support/node-script.ts";

const file = nodeScript("test/cli/end-later-process.ts");

describe("endLater", () => {
  it("says the words and ends a blocked process with the status", async () => {
    expect(await endOf(process.execPath, [await file, "blocked"])).toEqual({
      status: exitStatus.runFailed,
      out: "",
      err: "too late\n",
    });
  });

  it("does nothing once it is called off", async () => {
    expect(await endOf(process.execPath, [await file, "called off"])).toEqual({ status: 0, out: "", err: "" });
  });
});
