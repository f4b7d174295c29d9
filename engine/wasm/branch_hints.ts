/**
 * The custom section of branch hints (specification, appendix A.6). In: a module. Out: its hints by function and
 * offset. Reading is lenient, since a custom section cannot make a module invalid: if the section is damaged, the
 * module has no hints.
 */
import { ByteReader } from "../base/bytes.ts";
import { MalformedError } from "../base/errors.ts";
import type { Module } from "./module.ts";

/** The section's name. */
export const BRANCH_HINTS = "metadata.code.branch_hint";

/**
 * Hints by function index, then by the offset of the instruction in its function's body: 1 if the branch, or the first
 * arm of an `if`, is likely taken, 0 if it is unlikely.
 */
export type BranchHints = ReadonlyMap<number, ReadonlyMap<number, number>>;

const NO_HINTS: BranchHints = new Map();

/** The hints of a module; none if it has no such section, several, or a damaged one. */
export function readBranchHints(module: Pick<Module, "customs" | "imports" | "funcs">): BranchHints {
  const sections = module.customs.filter((custom) => custom.name === BRANCH_HINTS);
  if (sections.length !== 1) return NO_HINTS;
  const imported = module.imports.filter(({ desc }) => desc.kind === "func").length;
  try {
    return readSection(new ByteReader(sections[0].bytes), imported, imported + module.funcs.length);
  } catch (error) {
    if (error instanceof MalformedError) return NO_HINTS;
    throw error;
  }
}

/** Reads a section for the functions `first` … `end` − 1. */
function readSection(reader: ByteReader, first: number, end: number): BranchHints {
  const hints = new Map<number, Map<number, number>>();
  for (let funcs = reader.count(); funcs > 0; funcs--) {
    const index = reader.u32();
    if (index < first || index >= end) reader.fail(`branch hints of an unknown function ${index}`);
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
