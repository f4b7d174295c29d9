/**
 * The rules of all special rows, by row id: one function each, grouped by topic in control.ts, exceptions.ts,
 * storage.ts, references.ts, aggregates.ts, wide.ts, continuations.ts and descriptors.ts. A special row without a rule
 * does not type-check; a rule for a row that is not special is a Bug at load.
 */
import { Bug } from "../base/errors.ts";
import { IS_SIMPLE, OPCODES, rowByMnemonic, type SpecialMnemonic } from "../wasm/opcodes.ts";
import { AGGREGATE_RULES } from "./aggregates.ts";
import { CONTINUATION_RULES } from "./continuations.ts";
import { CONTROL_RULES, type Rule } from "./control.ts";
import { DESCRIPTOR_RULES } from "./descriptors.ts";
import { EXCEPTION_RULES } from "./exceptions.ts";
import { REFERENCE_RULES } from "./references.ts";
import { STORAGE_RULES } from "./storage.ts";
import { WIDE_RULES } from "./wide.ts";

const RULES = {
  ...CONTROL_RULES,
  ...EXCEPTION_RULES,
  ...STORAGE_RULES,
  ...REFERENCE_RULES,
  ...AGGREGATE_RULES,
  ...WIDE_RULES,
  ...CONTINUATION_RULES,
  ...DESCRIPTOR_RULES,
} as const satisfies Record<SpecialMnemonic, Rule>;

function notSpecial(): never {
  throw new Bug("A simple row has no special rule");
}

/** Rule of every special row, by id. */
export const SPECIAL_RULES: readonly Rule[] = rulesById();

function rulesById(): Rule[] {
  const rules = new Array<Rule>(OPCODES.length).fill(notSpecial);
  for (const [mnemonic, rule] of Object.entries(RULES)) {
    const row = rowByMnemonic(mnemonic);
    if (row === undefined || IS_SIMPLE[row.id] === 1) {
      throw new Bug(`"${mnemonic}" has a rule but is not a special row`);
    }
    rules[row.id] = rule;
  }
  return rules;
}
