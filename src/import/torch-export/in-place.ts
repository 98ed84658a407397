/**
 * In-place ops as ops with a result of their own: whoever reads the tensor afterwards reads the result. A model that
 * reads other views of the changed tensor afterwards is refused, because they would see the change.
 */
import { type Argument, type GraphNode, isList, isValue } from "./graph.ts";
import { unsupportedNode } from "./operands.ts";

/** Ops whose result may share the memory of `self`. */
export const views =
  /\.(?:view|reshape|_unsafe_view|flatten|unflatten|permute|transpose|t|numpy_T|mT|expand|expand_as|unsqueeze|squeeze|slice|narrow|select|split|split_with_sizes|chunk|unbind|alias|detach|contiguous|to|view_as_real|view_as_complex)\.\w+$/u;

/** `torch.ops.aten.div_.Tensor`, but not `__and__`. */
const inPlace = /\.([a-z]\w*[a-z0-9])_\.(\w+)$/u;

/** The op that gives a new tensor. */
export function functionalTarget(target: string): string {
  return target.replace(inPlace, ".$1.$2");
}

/** The nodes and the names of the outputs, without in-place ops. Throws `model-unsupported`. */
export function withoutInPlace(
  nodes: readonly GraphNode[],
  outputs: readonly string[],
): { readonly nodes: readonly GraphNode[]; readonly outputs: readonly string[] } {
  if (!nodes.some(({ target }) => inPlace.test(target))) return { nodes, outputs };
  /** The values that stand for changed ones. */
  const current = new Map<string, string>();
  /** The value whose memory a value may share. */
  const roots = new Map<string, string>();
  /** By root: the values that an in-place op made stale, and the op. */
  const stale = new Map<string, GraphNode>();
  const rootOf = (name: string): string => roots.get(name) ?? name;
  const renamed = (argument: Argument): Argument => {
    if (isList(argument)) return argument.map(renamed);
    if (!isValue(argument)) return argument;
    const changed = current.get(argument.name);
    const by = changed === undefined ? stale.get(argument.name) : undefined;
    if (by !== undefined) {
      unsupportedNode(
        by,
        `${by.target} changes a tensor of which another view is read afterwards`,
        `${argument.name}, read after the change`,
        "a program without in-place ops: exported_program = exported_program.run_decompositions({})",
      );
    }
    return changed === undefined ? argument : { kind: "value", name: changed };
  };
  const members = new Map<string, string[]>();
  const functional = nodes.map((node): GraphNode => {
    const inputs = new Map([...node.inputs].map(([name, argument]) => [name, renamed(argument)]));
    const isInPlace = inPlace.test(node.target);
    // Collectives call it `input`.
    const source = inputs.get("self") ?? (isInPlace ? inputs.get("input") : null) ?? null;
    for (const output of node.outputs) {
      const root = isValue(source) && (isInPlace || views.test(node.target)) ? rootOf(source.name) : output;
      roots.set(output, root);
      members.set(root, [...(members.get(root) ?? [root]), output]);
    }
    const [output] = node.outputs;
    if (!isInPlace || !isValue(source) || output === undefined) return { ...node, inputs };
    for (const name of members.get(rootOf(source.name)) ?? []) if (name !== output) stale.set(name, node);
    for (const [name, now] of current) if (now === source.name) current.set(name, output);
    current.set(source.name, output);
    return { ...node, inputs, target: functionalTarget(node.target) };
  });
  return { nodes: functional, outputs: outputs.map((name) => current.get(name) ?? name) };
}
