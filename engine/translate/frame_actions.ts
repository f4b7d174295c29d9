/**
 * The rows that open, continue and end frames, and those with labels. In: a row id. Out: columns by row, for readers of
 * bodies other than validation's.
 */
import { opcodeColumn } from "../wasm/opcodes.ts";
import { FRAME } from "./body_visitor.ts";

export const ACTION = {
  PLAIN: 0,
  ENTER: 1,
  ELSE: 2,
  CATCH: 3,
  CATCH_ALL: 4,
  END: 5,
  DELEGATE: 6,
  LABEL: 7,
  LABELS: 8,
} as const;

const KINDS: ReadonlyMap<string, number> = new Map([
  ["block", FRAME.BLOCK],
  ["loop", FRAME.LOOP],
  ["if", FRAME.IF],
  ["try_table", FRAME.TRY_TABLE],
  ["try", FRAME.TRY],
]);
const ACTIONS: ReadonlyMap<string, number> = new Map([
  ["else", ACTION.ELSE],
  ["catch", ACTION.CATCH],
  ["catch_all", ACTION.CATCH_ALL],
  ["end", ACTION.END],
  ["delegate", ACTION.DELEGATE],
]);

/** By opcode row: its action. */
export const ACTION_OF: Uint8Array = opcodeColumn(Uint8Array, ({ mnemonic, immediates }) => {
  if (KINDS.has(mnemonic)) return ACTION.ENTER;
  const action = ACTIONS.get(mnemonic);
  if (action !== undefined) return action;
  if (immediates.includes("labels")) return ACTION.LABELS;
  return immediates.includes("label") || immediates.includes("casttypes") ? ACTION.LABEL : ACTION.PLAIN;
});
/** By opcode row: the kind of frame that it opens. */
export const KIND_OF: Uint8Array = opcodeColumn(Uint8Array, ({ mnemonic }) => KINDS.get(mnemonic) ?? 0);
/** By opcode row: 1 for a test or a cast, whose operand has a static type that validation finds. */
export const IS_CAST: Uint8Array = opcodeColumn(
  Uint8Array,
  ({ mnemonic }) => Number(/^ref\.(test|cast)/.test(mnemonic)),
);
