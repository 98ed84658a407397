/**
 * In-place ops as ops with a result of their own: whoever reads the tensor afterwards reads the result. A change of a
 * view is written back into the tensor that it is a view of. A model that reads other views of the changed tensor
 * afterwards is refused, because they would see the change.
 */
import { type Argument, type ExportedGraph, type GraphNode, isList, isValue } from "./graph.ts";
import { axisIn, unsupportedNode } from "./operands.ts";

/** Ops whose result may share the memory of `self`, also those that Braid does not read. */
const viewNames = [
  "view view_as reshape reshape_as _unsafe_view flatten unflatten ravel permute transpose t numpy_T mT mH adjoint",
  "matrix_H movedim moveaxis swapaxes swapdims expand expand_as broadcast_to unsqueeze squeeze atleast_1d atleast_2d",
  "atleast_3d slice narrow select diagonal unfold as_strided split split_with_sizes chunk unsafe_chunk tensor_split hsplit",
  "vsplit dsplit unbind alias detach positive contiguous to type_as view_as_real view_as_complex real imag conj",
  "resolve_conj resolve_neg",
];
export const views = new RegExp(`\\.(?:${viewNames.join(" ").replaceAll(" ", "|")})\\.\\w+$`, "u");

/** `torch.ops.aten.div_.Tensor`, but not `__and__`. */
const inPlace = /\.([a-z]\w*[a-z0-9])_\.(\w+)$/u;

/** The op that gives a new tensor. */
export function functionalTarget(target: string): string {
  return target.replace(inPlace, ".$1.$2");
}

/**
 * The nodes and the names of the outputs, without in-place ops. Throws `model-unsupported`, also for a change of a value
 * that runs keep: a buffer of `inputs`.
 */
export function withoutInPlace({ nodes, outputs, inputs: sources }: InPlaceGraph): {
  readonly nodes: readonly GraphNode[];
  readonly outputs: readonly string[];
} {
  if (!nodes.some(({ target }) => inPlace.test(target))) return { nodes, outputs };
  /** The values that stand for changed ones. */
  const current = new Map<string, string>();
  /** The value whose memory a value may share. */
  const roots = new Map<string, string>();
  /** Views, by their names, as they read what they are views of. */
  const viewed = new Map<string, GraphNode>();
  /** The values that an in-place op made stale, and the op. */
  const stale = new Map<string, GraphNode>();
  const rootOf = (name: string): string => roots.get(name) ?? name;
  const nowOf = (name: string): string => {
    const now = current.get(name) ?? name;
    const by = stale.get(now);
    if (by === undefined) return now;
    return unsupportedNode(
      by,
      `${by.target} changes a tensor of which another view is read afterwards`,
      `${name}, read after the change`,
      "a program without in-place ops: exported_program = exported_program.run_decompositions({})",
    );
  };
  const renamed = (argument: Argument): Argument => {
    if (isList(argument)) return argument.map(renamed);
    return isValue(argument) ? { kind: "value", name: nowOf(argument.name) } : argument;
  };
  const members = new Map<string, string[]>();
  const join = (name: string, root: string): void => {
    roots.set(name, root);
    members.set(root, [...(members.get(root) ?? [root]), name]);
  };
  const replace = (name: string, by: string): void => {
    for (const [each, now] of current) if (now === name) current.set(each, by);
    current.set(name, by);
  };
  const functional = nodes.flatMap((node): readonly GraphNode[] => {
    const inputs = new Map([...node.inputs].map(([name, argument]) => [name, renamed(argument)]));
    const isInPlace = inPlace.test(node.target);
    // Collectives call it `input`.
    const source = inputs.get("self") ?? (isInPlace ? inputs.get("input") : null) ?? null;
    const isView = isValue(source) && views.test(node.target);
    for (const output of node.outputs) {
      join(output, isValue(source) && (isInPlace || isView) ? rootOf(source.name) : output);
      if (isView) viewed.set(output, { ...node, inputs });
    }
    const [output] = node.outputs;
    if (!isInPlace || !isValue(source) || output === undefined) return [{ ...node, inputs }];
    const others = members.get(rootOf(source.name)) ?? [];
    const made: GraphNode[] = [{ ...node, inputs, target: functionalTarget(node.target) }];
    let [changed, now] = [source.name, output];
    replace(changed, now);
    const written = new Set([now]);
    for (let view = viewed.get(changed); view !== undefined; view = viewed.get(changed)) {
      const whole = view.inputs.get("self") ?? null;
      const back = view.outputs.length === 1 && isValue(whole) ? writtenBack(view, now, whole.name) : null;
      if (back === null || !isValue(whole)) break;
      made.push({ ...node, ...back });
      viewed.set(now, { ...view, inputs: new Map([...view.inputs, ["self", { kind: "value", name: back.name }]]) });
      [changed, now] = [whole.name, back.name];
      replace(changed, now);
      join(now, rootOf(changed));
      written.add(now);
    }
    for (const name of others) if (!written.has(name)) stale.set(name, node);
    const root = rootOf(source.name);
    const buffer = sources.find((each) => each.kind === "buffer" && each.value === root);
    if (buffer?.kind === "buffer") {
      unsupportedNode(
        node,
        "a model changes a buffer",
        buffer.name,
        "a model that keeps its buffers: write what changes as state, an argument and a result",
      );
    }
    return made;
  });
  return { nodes: functional, outputs: outputs.map(nowOf) };
}

type InPlaceGraph = Pick<ExportedGraph, "nodes" | "outputs" | "inputs">;

interface WriteBack {
  /** The result, which no node of the file has. */
  readonly name: string;
  readonly target: string;
  readonly inputs: GraphNode["inputs"];
  readonly outputs: readonly string[];
}

/** `whole` with the elements of `view` changed to those of `changed`. Null for a view that may be a copy as well. */
function writtenBack({ target, inputs }: GraphNode, changed: string, whole: string): WriteBack | null {
  const name = `${whole}.${changed}`;
  const value = (of: string): Argument => ({ kind: "value", name: of });
  const back = (op: string, given: Iterable<readonly [string, Argument]>): WriteBack => ({
    name,
    target: `torch.ops.aten.${op}`,
    inputs: new Map(given),
    outputs: [name],
  });
  const scattered = (op: string): WriteBack => back(op, [...inputs, ["self", value(whole)], ["src", value(changed)]]);
  const arranged = (op: string): WriteBack => back(op, [...inputs, ["self", value(changed)]]);
  switch (/\.(\w+)\.\w+$/u.exec(target)?.[1]) {
    case "select":
      return scattered("select_scatter.default");
    case "slice":
      return scattered("slice_scatter.default");
    case "transpose":
      return arranged("transpose.int");
    case "t":
      return arranged("t.default");
    case "mT":
      return arranged("mT.default");
    case "permute": {
      const dims = inputs.get("dims") ?? null;
      if (!isList(dims)) return null;
      const order = dims.map((dim) => axisIn(Number(dim), dims.length));
      return back("permute.default", [
        ["self", value(changed)],
        ["dims", order.map((_, axis) => order.indexOf(axis))],
      ]);
    }
    case "view":
    case "unsqueeze":
    case "squeeze":
      return back("view_as.default", [
        ["self", value(changed)],
        ["other", value(whole)],
      ]);
    case "alias":
    case "detach":
      return back("alias.default", [["self", value(changed)]]);
    default:
      return null;
  }
}
