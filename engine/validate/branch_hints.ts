/**
 * The strict check of branch hints (wasm/branch_hints.ts), for tools that ask for it. In: a valid module. Out: nothing,
 * or an InvalidError for a hint that belongs to neither `if` nor `br_if`.
 */
import { InvalidError } from "../base/errors.ts";
import { CodeReader } from "../wasm/code_reader.ts";
import { idOf } from "../wasm/opcodes.ts";
import type { ValidModule } from "./valid_module.ts";

const IF = idOf("if");
const BR_IF = idOf("br_if");

/** Throws an InvalidError for the first hint of an instruction that is neither `if` nor `br_if`. */
export function validateBranchHints(valid: ValidModule): void {
  for (const [funcIndex, hints] of valid.branchHints) {
    const { bytes, offset: start } = valid.funcs[funcIndex - valid.importedFuncCount].body;
    const left = new Set([...hints.keys()].map((offset) => start + offset));
    const reader = new CodeReader(bytes, 0, bytes.length, start);
    reader.locals();
    while (!reader.done) {
      const id = reader.next();
      if (id === IF || id === BR_IF) left.delete(reader.at);
    }
    const [offset] = left;
    if (offset === undefined) continue;
    throw new InvalidError(`@metadata.code.branch_hint annotation: invalid target in function ${funcIndex}`, {
      offset,
    });
  }
}
