/** `braid calibrate` refuses bad values and files before it measures. */
import path from "node:path";
import { describe, expect, it } from "vitest";
import { cli } from "../../cli/captured-cli.ts";
import { ownFolder } from "../../cli/own-folder.ts";

const folder = ownFolder();

describe("refuses", () => {
  it("one device", async () => {
    const { status, err } = await cli("calibrate", "--devices", "1", "--out", path.join(folder.path, "one.json"));
    expect(status).toBe(2);
    expect(err).toContain("--devices");
  });

  it("hosts of one device", async () => {
    const out = path.join(folder.path, "one.json");
    const { status, err } = await cli("calibrate", "--devices", "2", "--devices-per-host", "1", "--out", out);
    expect(status).toBe(2);
    expect(err).toContain("--devices");
  });

  it("a file that cannot be written, before it measures", async () => {
    const { status, err } = await cli(
      "calibrate",
      "--devices",
      "2",
      "--out",
      path.join(folder.path, "no/such/file.json"),
    );
    expect(status).toBe(2);
    expect(err).toContain("error[file-unwritable]");
    expect(err).not.toContain("measuring");
  });
});
