/**
 * A statement as findings show it: tensors by name, because the line of the dump has the rest, and of an allocation
 * only what is allocated.
 *
 *   T6_l_float[iS21{3}, rS24{4}] (DeviceMesh{0 1}) = matmul(T5_g_float[iS18{3}, iS20{4}] (DeviceMesh{0 1}), T1_g_float[...])
 *   T6 = matmul(T5, T1)
 */
const tensor = /\b(T\d+)_[a-z]_\w+\[[^\]]*\](?: \(DeviceMesh\{.*?\}\))?/g;
const allocation = /ALLOCATE\(buffer=(T\d+),.*\)$/;

/** In one line. Other text stays unchanged. */
export function shortStatement(statement: string): string {
  return statement
    .replace(/\s*\n\s*/g, " ")
    .replace(/;$/, "")
    .replaceAll(tensor, "$1")
    .replace(allocation, "ALLOCATE(buffer=$1)");
}
