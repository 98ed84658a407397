/** Fusion IR as nvFuser prints it: what it computes and where it lies, and what is wrong with a text. */
import { expect, it } from "vitest";
import { importModel, MultiDeviceExecutor, print, Tensor } from "@braid-compiler/braid";
import { DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";

/** Rows on two devices, a sum that is gathered. Tensor 4 was removed by a pass. */
const sharded = `some output of the program
Inputs:
  T0_g_float[ideviceIdx.x12{2}, iS13{2}, iS1{2}] (DeviceMesh{0 1})
  T1_g_float[iS2{2}, iS3{3}] (DeviceMesh{0 1})
Outputs:
  T5_g_float[iS20{4}, iS21{3}] (DeviceMesh{0 1})

%kernel {
T2_l_float[ideviceIdx.x14{2}, iS15{2}, iS5{3}, rS6{2}] (DeviceMesh{0 1})
   = matmul(T0_g_float[ideviceIdx.x12{2}, iS13{2}, iS1{2}] (DeviceMesh{0 1}),
            T1_g_float[iS2{2}, iS3{3}] (DeviceMesh{0 1}))
T3_l_float[ideviceIdx.x16{2}, iS17{2}, iS8{3}] (DeviceMesh{0 1})
   = T2_l_float[ideviceIdx.x14{2}, iS15{2}, iS5{3}, rS6{2}] (DeviceMesh{0 1})
   + double(0.5);
T5_g_float[iS20{4}, iS21{3}] (DeviceMesh{0 1})
   = Set( T3_l_float[ideviceIdx.x16{2}, iS17{2}, iS8{3}] (DeviceMesh{0 1}), cache_op=Streaming )

TransformPrinter :
T0_g_float[ideviceIdx.x12{2}, iS13{2}, iS1{2}] (DeviceMesh{0 1})
 logical domain : (iS0{4}, iS1{2})
 contiguity: t t t
  Outer split: iS0{4} by factor 2 -> ideviceIdx.x12{2}, iS13{2}
 loop domain : (ideviceIdx.x12{2}, iS13{2}, iS1{2})
T2_l_float[ideviceIdx.x14{2}, iS15{2}, iS5{3}, rS6{2}] (DeviceMesh{0 1})
 logical domain : (iS4{4}, iS5{3}, rS6{2})
 contiguity: t t n
  Outer split: iS4{4} by factor 2 -> ideviceIdx.x14{2}, iS15{2}
 loop domain : (ideviceIdx.x14{2}, iS15{2}, iS5{3}, rS6{2})
T3_l_float[ideviceIdx.x16{2}, iS17{2}, iS8{3}] (DeviceMesh{0 1})
 logical domain : (iS7{4}, iS8{3})
 contiguity: t t
  Outer split: iS7{4} by factor 2 -> ideviceIdx.x16{2}, iS17{2}
 loop domain : (ideviceIdx.x16{2}, iS17{2}, iS8{3})
} // %kernel
`;

/** As printMath printed it before dtypes were part of a tensor. */
const math = `Inputs:
  T0_g[ iS0{i0}, iS1{i2} ], float
  T1_g[ iS2{i2} ], float
Outputs:
  T4_g[ iS6{i0}, iS7{i2} ], float

%kernel_math {
T2_l[ bS3{1}, iS4{i2} ]
   = broadcast( T1_g[ iS2{i2} ], flags = {true, false} )
T3_l[ iS8{i0}, iS9{i2} ]
   = T0_g[ iS0{i0}, iS1{i2} ]
   - T2_l[ bS3{1}, iS4{i2} ];
T4_g[ iS6{i0}, iS7{i2} ]
   = relu(T3_l[ iS8{i0}, iS9{i2} ]);
} // %kernel_math
`;

it("a Fusion with its schedule", async () => {
  const { fusion, devices, inputs, outputs } = await importModel(sharded, { file: "f.fusion" });
  expect([devices, inputs.map(({ names }) => names), outputs]).toEqual([2, [["in0"], ["in1"]], ["out0"]]);
  expect(fusion.data().tensors.map(({ origin }) => [origin?.name, origin?.source?.line])).toEqual([
    ["in0", 1],
    ["in1", 1],
    [undefined, 9],
    [undefined, 12],
    ["out0", 15],
  ]);
  const executor = await MultiDeviceExecutor.create(fusion, { devices: 2 });
  try {
    const x = [
      [1, 2],
      [3, 4],
      [5, 6],
      [7, 8],
    ];
    const w = [
      [1, 0, 1],
      [0, 1, 1],
    ];
    const [y] = await executor.run([Tensor.from(x), Tensor.from(w)]);
    expect(y === undefined ? null : Tensor.toArray(y)).toEqual(
      x.map(([a = 0, b = 0]) => [a + 0.5, b + 0.5, a + b + 0.5]),
    );
    expect(print(executor.hostProgram(0)).match(/type=\w+/gu)).toEqual(["type=global", "type=Allgather"]);
  } finally {
    await executor.close();
  }
});

it("the format is known by its first line, and sizes may be open", async () => {
  const { fusion } = await importModel(math);
  const sizes = new Map([
    ["i0", 2],
    ["i2", 2],
  ]);
  const given = [
    Tensor.from([
      [1, 2],
      [3, 4],
    ]),
    Tensor.from([2, 1]),
  ];
  const [y] = evaluateFusion(fusion.data(), given, sizes).outputs;
  expect(y === undefined ? null : Tensor.toArray(y)).toEqual([
    [0, 1],
    [1, 3],
  ]);
});

it.each([
  ["an axis on threads", math.replaceAll("iS8", "ithreadIdx.x8"), "dump-unsupported", 10, /threadIdx/u],
  ["an op that Braid lacks", math.replace("relu", "frobnicate"), "dump-unsupported", 14, /frobnicate/u],
  ["a tensor that nothing makes", math.replace("   - T2_l", "   - T7_l"), "dump-contradiction", 12, /T7|axis/u],
  [
    "an op after its reader",
    math.replace("T1_g[ iS2{i2} ], flags", "T4_g[ iS6{i0}, iS7{i2} ], flags"),
    "dump-contradiction",
    8,
    /T4 is read/u,
  ],
  [
    "a tensor that is made twice",
    math.replace("T4_g[ iS6{i0}, iS7{i2} ]\n   = relu", "T2_l[ bS3{1}, iS4{i2} ]\n   = relu"),
    "dump-contradiction",
    13,
    /T2|Unary/u,
  ],
  [
    "axes that do not fit",
    math.replaceAll("T3_l[ iS8{i0}, iS9{i2} ]", "T3_l[ iS8{i0} ]"),
    "dump-contradiction",
    10,
    /Binary/u,
  ],
  ["a text that is cut off", math.slice(0, math.indexOf("relu")), "dump-syntax", 14, /read/u],
  ["two Fusions", math + math, "dump-unsupported", 16, /several/u],
])("refuses %s with one message", async (_, text, code, line, message) => {
  const error = await importModel(text, { file: "f.fusion" }).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  const [found, ...more] = error instanceof DiagnosticError ? error.diagnostics : [];
  expect([found?.code, more]).toEqual([code, []]);
  expect(found?.place).toMatchObject({ path: "f.fusion", line });
  expect(`${found?.message} ${found?.found}`).toMatch(message);
});
