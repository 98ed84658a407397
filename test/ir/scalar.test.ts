/** Symbolic integers: folding never changes a value, and the two printed forms are nvFuser's. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  irSpellings,
  binary,
  constant,
  evaluateScalar,
  named,
  printOperation,
  printScalar,
  printScalarName,
  type Scalar,
  type ScalarOp,
  symbol,
} from "../../src/ir/scalar/scalar.ts";
import {
  extentsDiffer,
  foldAdd,
  foldCeilDiv,
  foldDiv,
  foldMul,
  foldProduct,
  foldSub,
  sameScalar,
} from "../../src/ir/scalar/fold.ts";

const i0 = symbol("i0");
const i2 = symbol("i2");
const folds = { add: foldAdd, sub: foldSub, mul: foldMul, div: foldDiv, ceilDiv: foldCeilDiv } as const;
type FoldedOp = keyof typeof folds;
const foldedOps = ["add", "sub", "mul", "div", "ceilDiv"] as const satisfies readonly FoldedOp[];

describe("size arithmetic", () => {
  const cases: readonly (readonly [FoldedOp, Scalar, Scalar, string])[] = [
    ["add", i0, constant(0), "i0"],
    ["add", constant(0), i0, "i0"],
    ["add", constant(3), constant(4), "7"],
    ["add", constant(3), i0, "( i0 + 3 )"],
    ["sub", i0, constant(0), "i0"],
    ["sub", i0, symbol("i0"), "0"],
    ["sub", constant(9), constant(4), "5"],
    ["sub", i0, i2, "( i0 - i2 )"],
    ["mul", i0, constant(1), "i0"],
    ["mul", constant(1), i0, "i0"],
    ["mul", i0, constant(0), "0"],
    ["mul", constant(0), i0, "0"],
    ["mul", constant(8), constant(128), "1024"],
    ["mul", constant(8), i0, "( i0 * 8 )"],
    ["mul", i0, i2, "( i0 * i2 )"],
    ["div", i0, constant(1), "i0"],
    ["div", i0, i0, "1"],
    ["div", constant(0), i0, "0"],
    ["div", constant(7), constant(2), "3"],
    ["div", i0, constant(2), "( i0 / 2 )"],
    ["ceilDiv", i0, constant(1), "i0"],
    ["ceilDiv", i0, i0, "1"],
    ["ceilDiv", constant(0), i0, "0"],
    ["ceilDiv", constant(7), constant(2), "4"],
    ["ceilDiv", i0, constant(3), "( ceilDiv(i0, 3) )"],
  ];
  it.each(cases)("%s folds", (op, lhs, rhs, expected) => {
    expect(printScalar(folds[op](lhs, rhs))).toBe(expected);
  });

  it("multiplies from the left, and gives 1 for no factors", () => {
    expect(printScalar(foldProduct([i0, i2, symbol("i3")]))).toBe("( ( i0 * i2 ) * i3 )");
    expect(printScalar(foldProduct([constant(8), constant(128), constant(1024)]))).toBe("1048576");
    expect(printScalar(foldProduct([]))).toBe("1");
  });

  it("folding keeps the value of any expression", () => {
    const leaf = fc.oneof(
      fc.integer({ min: 1, max: 6 }).map(constant),
      fc.constantFrom("i0", "i2", "i3").map((name) => symbol(name)),
    );
    const ops = fc.array(fc.tuple(fc.constantFrom(...foldedOps), leaf, fc.boolean()), {
      maxLength: 6,
    });
    const sizes = fc.record({
      i0: fc.integer({ min: 1, max: 9 }),
      i2: fc.integer({ min: 1, max: 9 }),
      i3: fc.integer({ min: 1, max: 9 }),
    });
    fc.assert(
      fc.property(leaf, ops, sizes, (first, steps, values) => {
        let foldedTree: Scalar = first;
        let tree: Scalar = first;
        for (const [op, operand, swap] of steps) {
          // Divisors stay on the right and positive, as for sizes.
          const swapped = swap && (op === "add" || op === "mul");
          foldedTree = swapped ? folds[op](operand, foldedTree) : folds[op](foldedTree, operand);
          tree = swapped ? binary(op, operand, tree) : binary(op, tree, operand);
        }
        const lookup = (name: string): number | undefined => new Map(Object.entries(values)).get(name);
        // `-0` of `%` and `ceilDiv` is the integer 0.
        expect((evaluateScalar(foldedTree, lookup) ?? NaN) + 0).toBe((evaluateScalar(tree, lookup) ?? NaN) + 0);
      }),
    );
  });
});

describe("equality of scalars", () => {
  it("compares structure and leaves, not printed names", () => {
    expect(sameScalar(binary("add", i0, i2, "i84"), binary("add", symbol("i0"), i2))).toBe(true);
    expect(sameScalar(binary("add", i0, i2), binary("add", i2, i0))).toBe(false);
    expect(sameScalar(binary("add", i0, i2), binary("sub", i0, i2))).toBe(false);
    expect(sameScalar(symbol("rank"), named("rank"))).toBe(false);
    expect(sameScalar(constant(1), constant(2))).toBe(false);
    expect(sameScalar(constant(1), i0)).toBe(false);
  });

  it("takes symbolic extents as equal", () => {
    expect(extentsDiffer(constant(1), constant(2))).toBe(true);
    expect(extentsDiffer(constant(2), constant(2))).toBe(false);
    expect(extentsDiffer(i0, constant(2))).toBe(false);
    expect(extentsDiffer(i0, i2)).toBe(false);
  });
});

describe("printed forms", () => {
  const stream = named("streamIdx");
  const shifted = binary("sub", named("rank"), stream, "i86");
  const peer = binary("mod", binary("add", constant(8), shifted, "i88"), constant(8), "i90");

  it("expands definitions inline", () => {
    expect(printScalar(binary("eq", peer, named("rank")))).toBe("( ( ( 8 + ( rank - streamIdx ) ) % 8 ) == rank )");
    expect(printScalar(binary("mod", stream, named("numberOfStreams")))).toBe("( streamIdx % numberOfStreams )");
  });

  it("prints every operator as nvFuser does", () => {
    const texts: readonly (readonly [ScalarOp, string])[] = [
      ["add", "( i0 + i2 )"],
      ["sub", "( i0 - i2 )"],
      ["mul", "( i0 * i2 )"],
      ["div", "( i0 / i2 )"],
      ["mod", "( i0 % i2 )"],
      ["ceilDiv", "( ceilDiv(i0, i2) )"],
      ["eq", "( i0 == i2 )"],
      ["ne", "( i0 != i2 )"],
      ["lt", "( i0 < i2 )"],
      ["le", "( i0 <= i2 )"],
      ["gt", "( i0 > i2 )"],
      ["ge", "( i0 >= i2 )"],
      ["and", "( i0 && i2 )"],
      ["or", "( i0 || i2 )"],
    ];
    for (const [op, text] of texts) expect(printScalar(binary(op, i0, i2))).toBe(text);
  });

  it("prints names where a value has one, and defines names by names", () => {
    expect(printScalarName(peer)).toBe("i90");
    expect(printScalarName(binary("add", i0, i2))).toBe("( i0 + i2 )");
    expect(printScalarName(stream)).toBe("streamIdx");
    expect(
      printOperation({ kind: "binary", op: "mod", lhs: peer, rhs: i2 }, (operand) => printScalarName(operand)),
    ).toBe("i90 % i2");
    expect(
      printOperation({ kind: "binary", op: "ceilDiv", lhs: i0, rhs: constant(3) }, (operand) =>
        printScalarName(operand),
      ),
    ).toBe("ceilDiv(i0, 3)");
  });

  it("spells named scalars as the style does", () => {
    const may = irSpellings["2025-05"];
    expect(printScalar(binary("eq", stream, named("rank")), may)).toBe("( StreamIdx == deviceIdx.x )");
    expect(printScalarName(stream, may)).toBe("StreamIdx");
    expect(printScalar(symbol("rank"), may)).toBe("rank");
  });
});
