/**
 * The custom section of branch hints (specification, appendix A.6), read leniently: a damaged one is as good as none, and
 * the printer then keeps its bytes.
 */
import { ByteReader } from "../base/bytes.ts";
import { MalformedError } from "../errors.ts";
import type { Module } from "../wasm/module.ts";

/** The section's name. */
export const BRANCH_HINTS = "metadata.code.branch_hint";

/** Hints (0 unlikely, 1 likely) by function index and by the instruction's offset in its function's body. */
export type BranchHints = Map<number, Map<number, number>>;

/** The hints of a module; empty when it has none or they are damaged. */
export function readBranchHints(module: Module): BranchHints {
  const sections = module.customs.filter((custom) => custom.name === BRANCH_HINTS);
  if (sections.length !== 1) return new Map();
  try {
    return readSection(new ByteReader(sections[0].bytes));
  } catch (error) {
    if (error instanceof MalformedError) return new Map();
    throw error;
  }
}

function readSection(reader: ByteReader): BranchHints {
  const hints: BranchHints = new Map();
  for (let funcs = reader.count(); funcs > 0; funcs--) {
    const index = reader.u32();
    const ofFunc = new Map<number, number>();
    for (let left = reader.count(); left > 0; left--) {
      const offset = reader.u32();
      const size = reader.u32();
      const value = reader.u8();
      if (size !== 1 || value > 1) reader.fail("malformed branch hint");
      ofFunc.set(offset, value);
    }
    hints.set(index, ofFunc);
  }
  if (reader.left > 0) reader.fail("malformed branch hints");
  return hints;
}
