/**
 * Branch hints: the custom section "metadata.code.branch_hint" (specification, appendix "Code Metadata"). Like every custom
 * section it cannot make a module invalid: reading is lenient, and what is damaged or names no branch is left out. The
 * strict check is for tools that ask for it.
 *
 * Out goes, by function index, the absolute offset of every hinted instruction and whether its branch is likely.
 */
import { ByteReader } from "../base/bytes.ts";
import { InvalidError, MalformedError } from "../errors.ts";
import type { Immediates } from "../wasm/immediates.ts";
import type { Module } from "../wasm/module.ts";
import { idOf } from "../wasm/opcodes.ts";
import type { ValType } from "../wasm/types.ts";
import { validateBody } from "./code.ts";
import type { ValidModule } from "./valid_module.ts";
import { type CodeVisitor, FRAME } from "./visitor.ts";

const SECTION_NAME = "metadata.code.branch_hint";
const BR_IF = idOf("br_if");

/** Hints of one function: by absolute offset of the instruction, true when the branch is likely taken. */
export type BranchHints = ReadonlyMap<number, boolean>;

/** Hints by function index, as far as the section can be read. */
export function branchHints(module: Module): ReadonlyMap<number, BranchHints> {
  const hints = new Map<number, BranchHints>();
  const section = module.customs.find((custom) => custom.name === SECTION_NAME);
  if (section === undefined) return hints;
  try {
    readHints(module, new ByteReader(section.bytes, 0, section.bytes.length, section.offset), hints);
  } catch (error) {
    if (!(error instanceof MalformedError)) throw error;
  }
  return hints;
}

function readHints(module: Module, reader: ByteReader, hints: Map<number, BranchHints>): void {
  const imported = module.imports.reduce((count, entry) => count + Number(entry.desc.kind === "func"), 0);
  for (let funcs = reader.count(); funcs > 0; funcs--) {
    const index = reader.u32();
    const func = module.funcs[index - imported];
    const offsets = new Map<number, boolean>();
    for (let left = reader.count(); left > 0; left--) {
      const offset = reader.u32();
      const size = reader.u32();
      const value = reader.take(size)[0];
      if (func === undefined || size !== 1 || value === undefined || value > 1) reader.fail("malformed branch hint");
      offsets.set(func.body.offset + offset, value === 1);
    }
    hints.set(index, offsets);
  }
}

/** Takes away the offsets of branches from those that are hinted. */
class TargetChecker implements CodeVisitor {
  readonly left: Set<number>;

  constructor(hints: BranchHints) {
    this.left = new Set(hints.keys());
  }

  begin(): void {}
  instruction(id: number, _imm: Immediates, at: number): void {
    if (id === BR_IF) this.left.delete(at);
  }
  enter(
    kind: number,
    _params: readonly ValType[],
    _results: readonly ValType[],
    _imm: Immediates,
    at: number,
  ): void {
    if (kind === FRAME.IF) this.left.delete(at);
  }
  otherwise(): void {}
  handler(): void {}
  end(): void {}
  finish(): void {}
}

/** Throws an InvalidError for the first hint that stands at neither `if` nor `br_if`. */
export function validateBranchHints(valid: ValidModule): void {
  for (const [funcIndex, hints] of branchHints(valid)) {
    const checker = new TargetChecker(hints);
    validateBody(valid, funcIndex, checker);
    const [offset] = checker.left;
    if (offset === undefined) continue;
    throw new InvalidError(`@metadata.code.branch_hint annotation: invalid target in function ${funcIndex}`, {
      offset,
    });
  }
}
