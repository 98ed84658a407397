/**
 * Reshardings of every kind that routes are planned for, on the devices that their meshes name: the programs of
 * test/routes, exchanges of equal, uneven and empty shares, meshes of unlike sizes, and random ones.
 */
import type { DType } from "../../../src/numerics/dtype.ts";
import { layout } from "../../routes/layout.ts";
import { fusionOf, routePrograms } from "../../routes/programs.ts";
import { randomMove } from "../../routes/random-move.ts";
import { devicesOf, type Move, reshardProgram } from "../../routes/reshard-program.ts";
import { fusionCase, get, nccl, put, type ReferenceCase } from "./reference-case.ts";

const idioms = [nccl, get, put];
/** Of the axes of the one large program: the oracle takes a second. */
const size = 1024;
const mostDevices = 4;
const randomMoves = 200;

interface NamedMove extends Move {
  readonly name: string;
  readonly dtype?: DType;
}

/** `on`: the mesh of the result, and its devices, if it is another one. */
function move(
  shape: readonly number[],
  mesh: string,
  cuts: readonly [string, string],
  on?: { readonly mesh: string; readonly devices?: readonly number[] },
  dtype: DType = "float",
): NamedMove {
  const { mesh: meshAfter = mesh, devices } = on ?? {};
  const where = devices === undefined ? "" : ` on ${devices.join(" ")}`;
  return {
    name: `${shape.join(" x ")} of ${dtype}, ${mesh} ${cuts[0]} -> ${meshAfter} ${cuts[1]}${where}`,
    shape,
    before: layout(mesh, cuts[0]),
    after: layout(meshAfter, cuts[1], devices === undefined ? {} : { devices }),
    dtype,
  };
}

const moves: readonly NamedMove[] = [
  move([64, 48], "y2 x2", ["[y][x]", "[x][y]"]),
  move([7, 5], "y2 x2", ["[y][x]", "[x][y]"], undefined, "bfloat16"),
  move([64, 6], "y2 x2", ["[x y][]", "[y x][]"]),
  move([13, 3], "y2 x2", ["[x y][]", "[y x][]"], undefined, "half"),
  move([5, 3], "y2 x2", ["[x y][]", "[][y x]"], undefined, "int"),
  move([64, 6], "x4", ["[x][]", "[y][x]"], { mesh: "y2 x2" }),
  move([64, 6], "x4", ["[][x]", "[x][]"], undefined, "bfloat16"),
  move([9, 7], "x4", ["[x][]", "[][x]"]),
  move([2, 7], "x4", ["[x][]", "[][x]"]),
  move([64, 6], "x4", ["[x][]", "[x][]"], { mesh: "x4", devices: [2, 3, 1, 0] }),
  move([12, 5], "x3", ["[x][]", "[][]"], { mesh: "x1", devices: [3] }),
  move([11, 5], "x3", ["[x][]", "[][x]"], { mesh: "x2", devices: [2, 3] }),
  move([12, 5], "x1", ["[][]", "[x][]"], { mesh: "x3", devices: [1, 2, 3] }),
  move([12, 6], "x2", ["[x][]", "[x][]"], { mesh: "x2", devices: [2, 3] }),
  move([12, 6], "x2", ["[x][]", "[][x]"], { mesh: "x2", devices: [3, 2] }, "half"),
  move([12, 6], "x2", ["[x][]", "[][x]"], { mesh: "x4" }),
  move([64, 6], "x2", ["[x][]", "[x][]"], { mesh: "x2", devices: [1, 0] }),
  move([9, 6], "x2", ["[x][]", "[][x]"], { mesh: "x2", devices: [1, 0] }, "bfloat16"),
];

const drawn = Array.from({ length: randomMoves }, (_, seed): NamedMove => {
  const { name, ...drawnMove } = randomMove(seed);
  return { ...drawnMove, name: `random resharding ${name}` };
}).filter((each) => devicesOf(each) <= mostDevices);

/** Sets from one layout to another. */
export const moveCases: readonly ReferenceCase[] = [...moves, ...drawn].map(({ name, dtype = "float", ...each }) =>
  fusionCase(
    name,
    idioms,
    () => reshardProgram(each, dtype),
    (devices) => devices >= devicesOf(each),
  ),
);

export const routeCases: readonly ReferenceCase[] = [
  ...routePrograms.map((each) =>
    fusionCase(
      each.name,
      idioms,
      () => fusionOf(each, size),
      (devices) => devices >= each.devices,
    ),
  ),
  ...moveCases,
];
