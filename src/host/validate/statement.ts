/** The rules for a single statement, one per kind. All ids in it are valid. */
import { type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import { dispatch, type RuleTable, at } from "../../support/invariant.ts";
import type {
  Allocate,
  ForLoop,
  HirAliasSelect,
  HostProgram,
  PostOnStream,
  ShardByStream,
  ShareMemHandles,
  Statement,
} from "../nodes.ts";
import { isOp } from "../traverse.ts";
import type { Fault, Faults } from "./ids.ts";
import { checkCommunication, checkOp, checkPeer, checkPermute } from "./op.ts";

/** The faults of a statement that do not depend on other statements. */
export function checkStatement(statement: Statement, program: HostProgram): readonly Fault[] {
  const found = isOp(statement) ? checkOp(statement, program.tensors) : dispatch(rules, statement, program);
  return [found].flat().filter((fault) => fault !== null);
}

const nothing = (): null => null;

const rules: RuleTable<Exclude<Statement, Op>, Faults, [HostProgram]> = {
  Allocate: checkAllocate,
  Deallocate: nothing,
  GetCurrentStream: nothing,
  SetCurrentStream: nothing,
  Synchronize: nothing,
  ForLoop: checkLoop,
  IfThenElse: nothing,
  HirAliasSelect: checkSelect,
  ShardByStream: checkShard,
  Define: nothing,
  CollectivePermute: checkPermute,
  Communication: checkCommunication,
  P2PCommunication: checkPeer,
  StartCoalescing: nothing,
  EndCoalescing: nothing,
  ShareMemHandles: checkHandles,
  Wait: nothing,
  PostOnStream: checkPost,
  LaunchKernel: nothing,
};

function sameDType(input: Tensor, output: Tensor): Fault | null {
  if (input.dtype === output.dtype) return null;
  return {
    message: "the output and the input have different dtypes",
    found: `T${input.id} ${input.dtype}, T${output.id} ${output.dtype}`,
    expected: "the same dtype",
    help: "convert with a Cast in a host unit",
  };
}

function checkAllocate({ tensor, memory }: Allocate, { tensors }: HostProgram): Fault | null {
  const own = at(tensors, tensor).memory;
  if (own === memory) return null;
  return {
    message: "an ALLOCATE and its tensor name different memory",
    found: `${memory} for a tensor in ${own} memory`,
    expected: "the tensor's memory type",
    help: `set the tensor's memory type to "${memory}"`,
  };
}

function checkLoop({ step }: ForLoop): Fault | null {
  if (step.kind === "constant" && Number.isSafeInteger(step.value) && step.value >= 1) return null;
  return {
    message: "the step of a loop is not a positive constant",
    found: step.kind === "constant" ? String(step.value) : `a ${step.kind} scalar`,
    expected: "a whole number of at least 1",
    help: "count up by a constant step",
  };
}

function checkSelect({ input, output, axis }: HirAliasSelect, { tensors }: HostProgram): Fault | null {
  const source = at(tensors, input);
  const { logical } = source.domain;
  const selected = at(logical, axis);
  const rank = withoutReductions(logical).length - (selected.iterType === "reduction" ? 0 : 1);
  const own = withoutReductions(at(tensors, output).domain.logical).length;
  if (own === rank) return sameDType(source, at(tensors, output));
  return {
    message: "the output of a HirAliasSelect does not have the input's axes but one",
    found: `${own} axes`,
    expected: `${rank}`,
    help: "give the output every axis of the input but the selected one",
  };
}

function checkShard({ input, output }: ShardByStream, { tensors }: HostProgram): Fault | null {
  const [source, chunk] = [at(tensors, input), at(tensors, output)];
  const [rank, own] = [source, chunk].map(({ domain }) => withoutReductions(domain.logical).length);
  if (own === rank) return sameDType(source, chunk);
  return {
    message: "the output of a ShardByStream does not have the input's axes",
    found: `${own} axes`,
    expected: String(rank),
    help: "give the output every axis of the input",
  };
}

function checkHandles({ communications }: ShareMemHandles): Fault | null {
  const other = communications.find(({ backend }) => backend !== "cuda");
  if (communications.length > 0 && other === undefined) return null;
  return {
    message: "ShareMemHandles takes P2PCommunications of the cuda backend",
    found: other === undefined ? "none" : `one of the ${other.backend} backend`,
    expected: "at least one, all of the cuda backend",
    help: other === undefined ? "remove the statement" : 'remove the statement, or set the backend to "cuda"',
  };
}

function checkPost({ unit, inputs, outputs }: PostOnStream, { tensors, units }: HostProgram): Faults {
  const { fusion, opaque } = at(units, unit);
  const unmade = opaque === undefined ? unmadeIn(fusion) : undefined;
  if (unmade !== undefined) {
    return {
      message: `HostUnit${unit} uses T${unmade}, which it neither takes nor makes`,
      found: `T${unmade}`,
      expected: "an input of the unit, or the output of an earlier op of it",
      help: `add T${unmade} to the unit's inputs and to the Inputs of this PostOnStream`,
    };
  }
  const sides = [
    { side: "input", given: inputs, own: fusion.inputs },
    { side: "output", given: outputs, own: fusion.outputs },
  ] as const;
  return sides.map(({ side, given, own }) => {
    if (given.length !== own.length) {
      return {
        message: `PostOnStream and its host unit have different numbers of ${side}s`,
        found: String(given.length),
        expected: String(own.length),
        help: `give one tensor per ${side} of the unit, in order`,
      };
    }
    const position = given.findIndex(
      (id, i) => signature(at(tensors, id)) !== signature(at(fusion.tensors, at<TensorId>(own, i))),
    );
    if (position < 0) return null;
    return {
      message: `PostOnStream and its host unit differ in ${side} ${position}`,
      found: signature(at(tensors, at(given, position))),
      expected: signature(at(fusion.tensors, at<TensorId>(own, position))),
      help: "give tensors of the unit's dtypes and ranks",
    };
  });
}

/** The first tensor that an op or an output uses before it has a value. */
function unmadeIn({ ops, inputs, outputs }: FusionData): TensorId | undefined {
  const made = new Set(inputs);
  for (const op of ops) {
    const unmade = op.inputs.find((id) => !made.has(id));
    if (unmade !== undefined) return unmade;
    for (const id of outputsOf(op)) made.add(id);
  }
  return outputs.find((id) => !made.has(id));
}

function signature({ dtype, domain }: Tensor): string {
  return `${dtype} with ${withoutReductions(domain.logical).length} axes`;
}
