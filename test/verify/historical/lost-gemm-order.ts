/**
 * TransformerEngine #2056. The chunks of a split GEMM run on streams of their own, each behind the copy of its chunk.
 * Which one the device starts first followed from the order of the launches and CUDA_DEVICE_MAX_CONNECTIONS=1; a
 * captured graph keeps edges alone, and lost it. Here, the second GEMM adds to what the first one wrote, and only the
 * order of the launches says so.
 */
import { link, type Program } from "@braid-compiler/braid";
import { buildLists } from "../../machine/list-builder.ts";
import type { HistoricalBug } from "./bug.ts";

function splitGemm(stated: boolean): Program {
  return link(
    buildLists(1, (list) => {
      const [a, b, c] = [list.input([4]), list.input([4]), list.output([4])];
      const streams = [list.stream("GEMM 0"), list.stream("GEMM 1")];
      const [one = 0, other = 0] = streams;
      for (const stream of streams) list.synchronize(stream, 0);
      list.statement("GEMM of chunk 0").binary(one, "mul", a, b, c);
      if (stated) list.statement("after chunk 0").synchronize(other, one);
      list.statement("GEMM of chunk 1").binary(other, "add", c, b, c);
      for (const stream of streams) list.statement("join").synchronize(0, stream);
    }),
  );
}

export const lostGemmOrder: HistoricalBug = {
  name: "TransformerEngine #2056: the order of split GEMMs is that of their launches",
  wrong: splitGemm(false),
  right: splitGemm(true),
  finding: {
    code: "data-race",
    places: [
      { rank: 0, streamName: "GEMM 0", kind: "launch", statement: "GEMM of chunk 0", run: 1 },
      { rank: 0, streamName: "GEMM 1", kind: "launch", statement: "GEMM of chunk 1", run: 1 },
    ],
  },
};
