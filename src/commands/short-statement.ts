/**
 * The form of a statement in findings: tensors by name, because the dump's line has the rest, and for an allocation
 * only the tensor.
 *
 *   T6_l_float[iS21{3}, rS24{4}] (DeviceMesh{0 1}) = matmul(T5_g_float[iS18{3}, iS20{4}] (DeviceMesh{0 1}), T1_g_float[...])
 *   T6 = matmul(T5, T1)
 */
const tensor = /\b(T\d+)_[a-z]_\w+\[[^\]]*\](?: \(DeviceMesh\{.*?\}\))?/g;
/** nvFuser puts blanks before the bracket that ends a linear. */
const call = /( = \w+\(.*\S)\s+\)$/;
const allocation = /ALLOCATE\(buffer=(T\d+),.*\)$/;

/** Returns one line, without the names of tensors, which the finding lists. Other text stays unchanged. */
export function shortStatement(statement: string): string {
  return statement
    .replace(/ {2}\/\/ .*$/, "")
    .replace(/\s*\n\s*/g, " ")
    .replace(/;$/, "")
    .replaceAll(tensor, "$1")
    .replace(call, "$1)")
    .replace(allocation, "ALLOCATE(buffer=$1)");
}
