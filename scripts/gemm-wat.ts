/**
 * The WebAssembly text of the matrix kernels, one template per job and one instance per element type. build-wasm.ts assembles it;
 * src/kernels/gemm/gemm.ts calls it and says how the pieces fit.
 *
 *   pack      copies a panel of an operand into strips, widening half and bfloat16 to f32
 *   tile      multiplies two strips: 4 rows by two vectors of columns, kept in registers
 *   unpack    adds the bias to a finished tile, rounds it to the output's dtype and stores it
 *   multiply  loops over the tiles of a panel
 *
 *   fold      adds finished sums to those of the next level
 *
 * Every element of a block over k is c = c + a * b in increasing k from +0, each operation rounded: no fused multiply-add. Sums of
 * blocks are added as src/numerics/sum-order.ts says, so that the bits of an element depend on nothing but its row and column.
 */

/**
 * Rows of a tile. With two vectors per row there are 8 sums, 2 vectors of b and 4 of a. V8 hoists the loads of a basic
 * block above its arithmetic, so all of them must fit in 15 registers. bench/NOTES.md has the figures of other tiles.
 */
export const tileRows = 4;

/** Steps over k per iteration of the loop. Each is a separate basic block (see above), because it may be the last. */
const unrolled = 4;

interface Accumulator {
  readonly type: "f32" | "f64" | "i32" | "i64";
  readonly bytes: 4 | 8;
  /** The vector shape, for add and mul. */
  readonly shape: string;
  readonly splat: string;
  /** How a finished tile is stored. */
  readonly outputs: readonly Output[];
}

interface Output {
  readonly name: string;
  readonly bytes: 2 | 4 | 8;
  /** Stores the accumulator `value` at `address`. */
  readonly store: (address: string, value: string) => string;
}

/** An element type of operands for packing. f32 and i32 are the same, because their bits are copied. */
interface Source {
  readonly name: string;
  readonly bytes: 2 | 4 | 8;
  readonly packedBytes: 4 | 8;
  /** Copies one element, widened, from `source` to `target`. */
  readonly copy: (target: string, source: string) => string;
  /** Copies two vectors of packed elements. */
  readonly copyRow: (target: string, source: string) => string;
}

const direct = (type: Accumulator["type"]): Output => ({
  name: "same",
  bytes: type === "f32" || type === "i32" ? 4 : 8,
  store: (address, value) => `(${type}.store ${address} ${value})`,
});

const narrowed = (name: "half" | "bfloat16"): Output => ({
  name,
  bytes: 2,
  store: (address, value) => `(i32.store16 ${address} (call $narrow_${name} ${value}))`,
});

const accumulators: readonly Accumulator[] = [
  {
    type: "f32",
    bytes: 4,
    shape: "f32x4",
    splat: "v128.load32_splat",
    outputs: [direct("f32"), narrowed("half"), narrowed("bfloat16")],
  },
  { type: "f64", bytes: 8, shape: "f64x2", splat: "v128.load64_splat", outputs: [direct("f64")] },
  { type: "i32", bytes: 4, shape: "i32x4", splat: "v128.load32_splat", outputs: [direct("i32")] },
  { type: "i64", bytes: 8, shape: "i64x2", splat: "v128.load64_splat", outputs: [direct("i64")] },
];

const copied = (bits: 32 | 64): Source => ({
  name: `bits${bits}`,
  bytes: bits === 32 ? 4 : 8,
  packedBytes: bits === 32 ? 4 : 8,
  copy: (target, source) => `(i${bits}.store ${target} (i${bits}.load ${source}))`,
  copyRow: (target, source) => `
        (v128.store ${target} (v128.load ${source}))
        (v128.store offset=16 ${target} (v128.load offset=16 ${source}))`,
});

const widened = (name: "half" | "bfloat16"): Source => ({
  name,
  bytes: 2,
  packedBytes: 4,
  copy: (target, source) => `(i32.store ${target} (call $widen_${name} (i32.load16_u ${source})))`,
  copyRow: (target, source) => `
        (v128.store ${target} (call $widen4_${name} (v128.load16x4_u ${source})))
        (v128.store offset=16 ${target} (call $widen4_${name} (v128.load16x4_u offset=8 ${source})))`,
});

const sources: readonly Source[] = [copied(32), copied(64), widened("half"), widened("bfloat16")];

/** The whole module. Shared and unshared memory need different imports. */
export function gemmModule(memory: "shared" | "unshared"): string {
  const limits = memory === "shared" ? "1 65536 shared" : "1";
  return [
    `(module\n(import "env" "memory" (memory ${limits}))`,
    conversions,
    ...sources.map(pack),
    ...accumulators.flatMap((accumulator) => [
      tile(accumulator),
      ...accumulator.outputs.map((output) => unpack(accumulator, output)),
      multiply(accumulator),
      fold(accumulator),
    ]),
    ")",
  ].join("\n");
}

function times(count: number, line: (i: number) => string): string {
  return Array.from({ length: count }, (_, i) => line(i)).join("\n");
}

/** Columns of a tile: two vectors. */
function tileColumns({ bytes }: { readonly bytes: number }): number {
  return 32 / bytes;
}

/** half and bfloat16 as src/numerics/convert.ts defines them. */
const conversions = `
(func $widen_bfloat16 (param $word i32) (result i32)
  (i32.shl (local.get $word) (i32.const 16)))

(func $widen4_bfloat16 (param $words v128) (result v128)
  (i32x4.shl (local.get $words) (i32.const 16)))

;; The exponent moves to its place in f32 and is corrected by a product with 2^112, which makes subnormals normal.
;; An exponent of all ones stays one.
(func $widen4_half (param $words v128) (result v128)
  (local $magnitude v128)
  (local.set $magnitude
    (i32x4.shl (v128.and (local.get $words) (v128.const i32x4 0x7fff 0x7fff 0x7fff 0x7fff)) (i32.const 13)))
  (v128.or
    (v128.or
      (f32x4.mul (local.get $magnitude) (v128.const f32x4 0x1p112 0x1p112 0x1p112 0x1p112))
      (v128.and
        (i32x4.gt_s (local.get $magnitude) (v128.const i32x4 0x0f7fffff 0x0f7fffff 0x0f7fffff 0x0f7fffff))
        (v128.const i32x4 0x7f800000 0x7f800000 0x7f800000 0x7f800000)))
    (i32x4.shl
      (v128.and (local.get $words) (v128.const i32x4 0x8000 0x8000 0x8000 0x8000)) (i32.const 16))))

(func $widen_half (param $word i32) (result i32)
  (i32x4.extract_lane 0 (call $widen4_half (i32x4.splat (local.get $word)))))

(func $narrow_bfloat16 (param $value f32) (result i32)
  (local $bits i32)
  (if (f32.ne (local.get $value) (local.get $value)) (then (return (i32.const 0x7fc0))))
  (local.set $bits (i32.reinterpret_f32 (local.get $value)))
  (i32.shr_u
    (i32.add
      (i32.add (local.get $bits) (i32.const 0x7fff))
      (i32.and (i32.shr_u (local.get $bits) (i32.const 16)) (i32.const 1)))
    (i32.const 16)))

(func $narrow_half (param $value f32) (result i32)
  (local $magnitude i32) (local $sign i32)
  (local.set $magnitude (i32.and (i32.reinterpret_f32 (local.get $value)) (i32.const 0x7fffffff)))
  (local.set $sign
    (i32.and (i32.shr_u (i32.reinterpret_f32 (local.get $value)) (i32.const 16)) (i32.const 0x8000)))
  (if (f32.ne (local.get $value) (local.get $value)) (then (return (i32.const 0x7e00))))
  ;; 2^16 and above is infinity.
  (if (i32.ge_u (local.get $magnitude) (i32.const 0x47800000))
    (then (return (i32.or (local.get $sign) (i32.const 0x7c00)))))
  ;; Below 2^-14 the sum with 0.5 has the spacing of half's subnormals.
  (if (i32.lt_u (local.get $magnitude) (i32.const 0x38800000))
    (then (return
      (i32.or
        (local.get $sign)
        (i32.sub
          (i32.reinterpret_f32 (f32.add (f32.abs (local.get $value)) (f32.const 0.5)))
          (i32.const 0x3f000000))))))
  (i32.or
    (local.get $sign)
    (i32.shr_u
      (i32.add
        (i32.sub (local.get $magnitude) (i32.const 0x37fff001))
        (i32.and (i32.shr_u (local.get $magnitude) (i32.const 13)) (i32.const 1)))
      (i32.const 13))))
`;

/**
 * Packs \`count\` lines of \`k\` elements into strips of \`width\` lines: within a strip the lines' first elements, then their second
 * ones, and so on. Lines that the last strip lacks are zero. Strides in bytes.
 */
function pack({ name, bytes, packedBytes, copy, copyRow }: Source): string {
  const target = "(local.get $target)";
  const source = "(local.get $source)";
  return `
(func (export "pack_${name}")
  (param $to i32) (param $from i32) (param $count i32) (param $k i32)
  (param $lineStride i32) (param $kStride i32) (param $width i32)
  (local $line i32) (local $i i32) (local $target i32) (local $source i32) (local $step i32) (local $present i32)
  (local.set $step (i32.mul (local.get $width) (i32.const ${packedBytes})))
  (loop $strips
    (local.set $present (select (local.get $width) (local.get $count) (i32.lt_s (local.get $width) (local.get $count))))
    (if (i32.and
          (i32.and
            (i32.eq (local.get $lineStride) (i32.const ${bytes}))
            (i32.eq (local.get $step) (i32.const 32)))
          (i32.eq (local.get $present) (local.get $width)))
      (then
        ;; Two vectors of neighbours.
        (local.set $target (local.get $to))
        (local.set $source (local.get $from))
        (local.set $i (local.get $k))
        (loop $rows${copyRow(target, source)}
          (local.set $target (i32.add (local.get $target) (i32.const 32)))
          (local.set $source (i32.add (local.get $source) (local.get $kStride)))
          (br_if $rows (local.tee $i (i32.sub (local.get $i) (i32.const 1))))))
      (else
        (local.set $line (i32.const 0))
        (loop $lines
          (local.set $target
            (i32.add (local.get $to) (i32.mul (local.get $line) (i32.const ${packedBytes}))))
          (local.set $i (local.get $k))
          (if (i32.lt_s (local.get $line) (local.get $present))
            (then
              (local.set $source
                (i32.add (local.get $from) (i32.mul (local.get $line) (local.get $lineStride))))
              (loop $elements
                ${copy(target, source)}
                (local.set $target (i32.add (local.get $target) (local.get $step)))
                (local.set $source (i32.add (local.get $source) (local.get $kStride)))
                (br_if $elements (local.tee $i (i32.sub (local.get $i) (i32.const 1))))))
            (else
              (loop $zeros
                (i${packedBytes * 8}.store ${target} (i${packedBytes * 8}.const 0))
                (local.set $target (i32.add (local.get $target) (local.get $step)))
                (br_if $zeros (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))))
          (br_if $lines
            (i32.lt_s (local.tee $line (i32.add (local.get $line) (i32.const 1))) (local.get $width))))))
    (local.set $to (i32.add (local.get $to) (i32.mul (local.get $step) (local.get $k))))
    (local.set $from (i32.add (local.get $from) (i32.mul (local.get $width) (local.get $lineStride))))
    (br_if $strips
      (i32.gt_s (local.tee $count (i32.sub (local.get $count) (local.get $width))) (i32.const 0)))))
`;
}

/**
 * sums = (resume ? sums : 0) + (a strip of a times a strip of b). \`$bStep\` is the distance in bytes from one k to the next in b,
 * so that b may also be read unpacked.
 */
function tile({ type, bytes, shape, splat }: Accumulator): string {
  const cell = (row: number, half: number): string => `$c${row}${half}`;
  const multiplyAdd = (row: number, half: number): string => `
    (local.set ${cell(row, half)}
      (${shape}.add (local.get ${cell(row, half)}) (${shape}.mul (local.get $x) (local.get $b${half}))))`;
  const step = (i: number): string => `
    (local.set $b0 (v128.load (local.get $b)))
    (local.set $b1 (v128.load offset=16 (local.get $b)))
    ${times(
      tileRows,
      (row) => `
    (local.set $x (${splat} offset=${(i * tileRows + row) * bytes} (local.get $a)))${multiplyAdd(row, 0)}${multiplyAdd(row, 1)}`,
    )}
    (local.set $b (i32.add (local.get $b) (local.get $bStep)))
    (br_if $done (i32.eqz (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))`;
  return `
(func $tile_${type}
  (param $a i32) (param $b i32) (param $k i32) (param $bStep i32) (param $sums i32) (param $resume i32)
  (local $x v128) (local $b0 v128) (local $b1 v128)
  ${times(tileRows, (row) => `(local ${cell(row, 0)} v128) (local ${cell(row, 1)} v128)`)}
  (block $done
    (loop $next
      ${times(unrolled, step)}
      (local.set $a (i32.add (local.get $a) (i32.const ${tileRows * bytes * unrolled})))
      (br $next)))
  (if (local.get $resume)
    (then
      ${times(
        tileRows,
        (row) => `
      (local.set ${cell(row, 0)}
        (${shape}.add (v128.load offset=${row * 32} (local.get $sums)) (local.get ${cell(row, 0)})))
      (local.set ${cell(row, 1)}
        (${shape}.add (v128.load offset=${row * 32 + 16} (local.get $sums)) (local.get ${cell(row, 1)})))`,
      )}))
  ${times(
    tileRows,
    (row) => `
  (v128.store offset=${row * 32} (local.get $sums) (local.get ${cell(row, 0)}))
  (v128.store offset=${row * 32 + 16} (local.get $sums) (local.get ${cell(row, 1)}))`,
  )})
`;
}

/** Stores the first $m rows and $n columns of a tile at $c. $bias, if not 0, holds one packed value per column. Strides in bytes. */
function unpack(accumulator: Accumulator, output: Output): string {
  const { type, bytes, shape } = accumulator;
  const columns = tileColumns(accumulator);
  const column = `(i32.mul (local.get $j) (i32.const ${bytes}))`;
  const whole = `
  (if (i32.and
        (i32.eq (local.get $n) (i32.const ${columns}))
        (i32.eq (local.get $columnStride) (i32.const ${bytes})))
    (then
      (if (local.get $bias)
        (then
          (local.set $bias0 (v128.load (local.get $bias)))
          (local.set $bias1 (v128.load offset=16 (local.get $bias)))))
      (loop $rows
        (v128.store (local.get $c) (${shape}.add (v128.load (local.get $sums)) (local.get $bias0)))
        (v128.store offset=16
          (local.get $c) (${shape}.add (v128.load offset=16 (local.get $sums)) (local.get $bias1)))
        (local.set $c (i32.add (local.get $c) (local.get $rowStride)))
        (local.set $sums (i32.add (local.get $sums) (i32.const 32)))
        (br_if $rows (local.tee $m (i32.sub (local.get $m) (i32.const 1)))))
      (return)))`;
  return `
(func $unpack_${type}_${output.name}
  (param $sums i32) (param $c i32) (param $rowStride i32) (param $columnStride i32)
  (param $m i32) (param $n i32) (param $bias i32)
  (local $j i32) (local $at i32) (local $value ${type}) (local $bias0 v128) (local $bias1 v128)${output.name === "same" ? whole : ""}
  (loop $rows
    (local.set $j (i32.const 0))
    (local.set $at (local.get $c))
    (loop $columns
      (local.set $value (${type}.load (i32.add (local.get $sums) ${column})))
      (if (local.get $bias)
        (then
          (local.set $value
            (${type}.add (local.get $value) (${type}.load (i32.add (local.get $bias) ${column}))))))
      ${output.store("(local.get $at)", "(local.get $value)")}
      (local.set $at (i32.add (local.get $at) (local.get $columnStride)))
      (br_if $columns
        (i32.lt_s (local.tee $j (i32.add (local.get $j) (i32.const 1))) (local.get $n))))
    (local.set $c (i32.add (local.get $c) (local.get $rowStride)))
    (local.set $sums (i32.add (local.get $sums) (i32.const 32)))
    (br_if $rows (local.tee $m (i32.sub (local.get $m) (i32.const 1))))))
`;
}

/**
 * All tiles of an m x n panel over k. $a holds packed strips; the strips of b lie $bStrip bytes apart. Tile t keeps its sums at
 * $sums + t * $sumsStep: 0 where no later call resumes. $output is 0 while k is not finished, else 1 + the index of the output. With
 * $k = 0 the sums are finished already.
 */
function multiply(accumulator: Accumulator): string {
  const { type, bytes, outputs } = accumulator;
  const columns = tileColumns(accumulator);
  const least = (name: string, limit: number): string =>
    `(select (local.get ${name}) (i32.const ${limit}) (i32.lt_s (local.get ${name}) (i32.const ${limit})))`;
  return `
(func (export "multiply_${type}")
  (param $a i32) (param $b i32) (param $bStrip i32) (param $bStep i32)
  (param $m i32) (param $n i32) (param $k i32)
  (param $sums i32) (param $sumsStep i32) (param $resume i32)
  (param $output i32) (param $c i32) (param $rowStride i32) (param $columnStride i32) (param $bias i32)
  (local $aStrip i32) (local $rows i32) (local $row i32) (local $at i32)
  (local.set $aStrip (i32.mul (local.get $k) (i32.const ${tileRows * bytes})))
  (loop $columns
    (local.set $rows (local.get $m))
    (local.set $row (local.get $a))
    (local.set $at (local.get $c))
    (loop $tiles
      (if (local.get $k)
        (then
          (call $tile_${type}
            (local.get $row) (local.get $b) (local.get $k) (local.get $bStep) (local.get $sums) (local.get $resume))))
      ${outputs
        .map(
          ({ name }, i) => `
      (if (i32.eq (local.get $output) (i32.const ${i + 1}))
        (then
          (call $unpack_${type}_${name}
            (local.get $sums) (local.get $at) (local.get $rowStride) (local.get $columnStride)
            ${least("$rows", tileRows)} ${least("$n", columns)} (local.get $bias))))`,
        )
        .join("")}
      (local.set $sums (i32.add (local.get $sums) (local.get $sumsStep)))
      (local.set $row (i32.add (local.get $row) (local.get $aStrip)))
      (local.set $at (i32.add (local.get $at) (i32.mul (local.get $rowStride) (i32.const ${tileRows}))))
      (br_if $tiles
        (i32.gt_s (local.tee $rows (i32.sub (local.get $rows) (i32.const ${tileRows}))) (i32.const 0))))
    (local.set $b (i32.add (local.get $b) (local.get $bStrip)))
    (local.set $c (i32.add (local.get $c) (i32.mul (local.get $columnStride) (i32.const ${columns}))))
    (if (local.get $bias) (then (local.set $bias (i32.add (local.get $bias) (i32.const 32)))))
    (br_if $columns
      (i32.gt_s (local.tee $n (i32.sub (local.get $n) (i32.const ${columns}))) (i32.const 0)))))
`;
}

/** to = (resume ? to : 0) + from, over $bytes bytes of sums: a multiple of 16, not 0. */
function fold({ type, shape }: Accumulator): string {
  return `
(func (export "fold_${type}") (param $to i32) (param $from i32) (param $bytes i32) (param $resume i32)
  (local $value v128)
  (loop $vectors
    (local.set $value (v128.load (local.get $from)))
    (if (local.get $resume)
      (then (local.set $value (${shape}.add (v128.load (local.get $to)) (local.get $value)))))
    (v128.store (local.get $to) (local.get $value))
    (local.set $to (i32.add (local.get $to) (i32.const 16)))
    (local.set $from (i32.add (local.get $from) (i32.const 16)))
    (br_if $vectors (local.tee $bytes (i32.sub (local.get $bytes) (i32.const 16))))))
`;
}
