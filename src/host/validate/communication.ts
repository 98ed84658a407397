/** The rules of nvFuser's Communication and P2PCommunication constructors. */
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import type { Tensor } from "../../ir/domain.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import { firstRepeated } from "../../support/first-repeated.ts";
import { at } from "../../support/invariant.ts";
import { collectives, isRooted } from "../collectives.ts";
import type { Fault } from "./fault.ts";
import type { CollectivePermute, Communication, HostProgram, P2PCommunication } from "../nodes.ts";

export function checkCommunication(statement: Communication, { tensors }: HostProgram): readonly Fault[] {
  const input = at(tensors, statement.input);
  const output = at(tensors, statement.output);
  return [
    ...checkTeam(statement, input.mesh),
    ...checkRoot(statement),
    ...checkReduceOp(statement),
    ...checkTensors(input, output),
  ];
}

export function checkPermute(statement: CollectivePermute, { tensors }: HostProgram): readonly Fault[] {
  return [
    ...checkTeam({ type: "AllToAll", team: statement.team }),
    ...checkTensors(at(tensors, statement.input), at(tensors, statement.output)),
  ];
}

export function checkPeer({ peer }: P2PCommunication): readonly Fault[] {
  const value = constantOf(peer);
  if (value === null || isDevice(value)) return [];
  return [
    {
      message: "the peer is not a device",
      found: String(value),
      expected: "a device id, a whole number of at least 0",
      help: "name the device at the other end",
    },
  ];
}

function checkTeam(
  { type, team }: Pick<Communication, "type" | "team">,
  mesh: DeviceMesh | null = null,
): readonly Fault[] {
  // A mesh has checked its devices.
  const isChecked = team === mesh?.devices;
  const repeated = isChecked ? undefined : firstRepeated(team);
  const bad = isChecked ? undefined : team.find((device) => !isDevice(device));
  if (team.length > 0 && repeated === undefined && bad === undefined) {
    // A team of one rank sends to itself.
    if (type !== "SendRecv" || team.length <= 2) return [];
    return [
      {
        message: "the team of a SendRecv has more than two ranks",
        found: `(${team.join(" ")})`,
        expected: "the sender and the receiver",
        help: "post one SendRecv per pair",
      },
    ];
  }
  return [
    {
      message:
        team.length === 0
          ? "a team is empty"
          : bad === undefined
            ? `device ${repeated} is listed twice in a team`
            : "a team lists something that is not a device",
      found: `(${team.join(" ")})`,
      expected: "at least one device id, each once",
      help: "list the devices that take part, in order",
    },
  ];
}

function checkRoot({ type, team, root }: Communication): readonly Fault[] {
  const rooted = isRooted(type);
  if (rooted !== (root !== null)) {
    return [
      {
        message: rooted ? `${type} needs a root` : `${type} has no root`,
        found: rooted ? "no root" : "a root",
        expected: rooted ? `a position in the team, 0 to ${team.length - 1}` : "null",
        help: rooted ? "give the root's position in the team" : "remove the root",
      },
    ];
  }
  const value = root === null ? null : constantOf(root);
  if (value === null || (Number.isSafeInteger(value) && value >= 0 && value < team.length)) return [];
  return [
    {
      message: "the root is not a position in the team",
      found: String(value),
      expected: `0 to ${team.length - 1}`,
      help: "count positions in the team from 0; the root is not a device id",
    },
  ];
}

function checkReduceOp({ type, reduceOp }: Communication): readonly Fault[] {
  const { reduces } = collectives[type];
  if (reduces === (reduceOp !== null)) return [];
  return [
    {
      message: reduces ? `${type} needs a reduction op` : `${type} does not reduce`,
      found: reduceOp ?? "no reduction op",
      expected: reduces ? "sum, prod, min or max" : "null",
      help: reduces ? "give the reduction op that combines the ranks' elements" : "remove the reduction op",
    },
  ];
}

function checkTensors(input: Tensor, output: Tensor): readonly Fault[] {
  const bare = [input, output].find(({ mesh }) => mesh === null);
  if (bare !== undefined) {
    return [
      {
        message: `T${bare.id} takes part in a communication and has no mesh`,
        found: "no mesh",
        expected: "a mesh on the input and the output",
        help: "set the DeviceMesh of both tensors",
      },
    ];
  }
  if (input.dtype === output.dtype) return [];
  return [
    {
      message: "a communication does not convert dtypes",
      found: `${input.dtype} and ${output.dtype}`,
      expected: "the same dtype on both sides",
      help: "convert before or after, with a Cast in a host unit",
    },
  ];
}

function isDevice(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function constantOf(scalar: Scalar): number | null {
  return scalar.kind === "constant" ? scalar.value : null;
}
