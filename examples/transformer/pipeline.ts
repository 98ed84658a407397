/**
 * A training step of a pipeline: each stage is two linear layers, whose weights stay on its rank. Micro-batches go forward
 * and backward through the stages in one of four orders, and their weight gradients are added up. ORDER: 0 is GPipe, 1
 * one forward one backward, 2 interleaved with two stages on each rank, 3 zero bubble. The devices of a rank (TP of them)
 * share its layers.
 *
 *   npx braid run examples/transformer/pipeline.ts --check
 *   npx braid explain examples/transformer/pipeline.ts --set ORDER=3
 */
import { add, Fusion, gradients, linear, pipeline, pipelineOrders, program, relu } from "@braid-compiler/braid";

const orders = [
  pipelineOrders.gpipe,
  pipelineOrders.oneForwardOneBackward,
  pipelineOrders.interleaved,
  pipelineOrders.zeroBubble,
];

/** A residual layer: y = x + relu(x W0^T) W1^T. */
const layer = (x: ReturnType<Fusion["input"]>, w0: typeof x, w1: typeof x) => add(x, linear(relu(linear(x, w0)), w1));

export default program(
  { MICRO: 8, B: 32, H: 64, FFN: 128, ORDER: 1, TP: 1 },
  ({ devices, rank, params: { MICRO, B, H, FFN, ORDER, TP } }) => {
    const order = orders[ORDER]?.({ ranks: devices / TP, microBatches: MICRO }) ?? [];
    return pipeline({
      devices,
      rank,
      order,
      stage: ({ mesh }) => {
        const f = new Fusion();
        const x = f.input([B, H]);
        const [w0, w1] = [f.input([FFN, H]), f.input([H, FFN])];
        f.output(layer(x, w0, w1));
        for (const tensor of f.inputs) tensor.setDeviceMesh(mesh);
        w0.outerSplit(0, TP).parallelize("DIDx");
        w1.outerSplit(1, TP).parallelize("DIDx");
        return f;
      },
    });
  },
  {
    reference: ({ devices, params: { MICRO, B, H, FFN, ORDER, TP } }) => {
      const f = new Fusion();
      const x = f.input([MICRO, B, H]);
      const dy = f.input([MICRO, B, H]);
      const stages = (devices / TP) * (ORDER === 2 ? 2 : 1);
      const weights = Array.from({ length: stages }, () => [f.input([FFN, H]), f.input([H, FFN])] as const);
      const y = weights.reduce((hidden, [w0, w1]) => layer(hidden, w0, w1), x);
      f.output(y);
      for (const each of gradients(f, { of: [y], cotangents: [dy], wrt: [x, ...weights.flat()] })) {
        if (each !== null) f.output(each);
      }
      return f;
    },
  },
);
