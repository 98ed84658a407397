/** nvFuser's test_multidevice_pipeline.cpp: a program over seven meshes. */
import { describe, expect, it } from "vitest";
import { add, DeviceMesh, Fusion, set, sum, type TensorView } from "@braid-compiler/braid";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";

describe("PipelineTest", () => {
  function pipeline(): Fusion {
    const f = new Fusion();
    const place = (tensor: TensorView, devices: readonly number[]): TensorView =>
      tensor.setDeviceMesh(new DeviceMesh(devices));
    const x = place(f.input([6, 7]), [5]);
    const rows = place(sum(x, [0]), [5]);
    const sent = place(set(rows), [2, 4]);
    const total = place(sum(sent, [0]), [2, 4]);
    const y = place(f.input([3, 5, 2]), [0]);
    const planes = place(sum(y, [0]), [0]);
    const spread = place(set(planes), [0, 1, 4]);
    const doubled = place(add(spread, spread), [0, 1, 4]);
    const narrowed = place(set(doubled), [1, 3]);
    const columns = place(sum(narrowed, [1]), [1, 3]);
    const one = place(set(columns), [2]);
    const last = place(set(one), [4, 5]);
    f.output(total);
    f.output(place(add(last, last), [4, 5]));
    f.output(narrowed);
    return f;
  }

  it("Pipeline: six devices, seven meshes", async () => {
    // To one device, nvFuser has a Broadcast, too.
    expect(collectivesOf(pipeline(), 6)).toBe("Broadcast 4, SendRecv 1");
    await expectOracle(pipeline(), { devices: 6 });
    await expectOracle(pipeline(), { devices: 6, backend: "cuda" });
  });
});
