/**
 * Prices of instructions in fuel that an embedder sets. In: names of groups or of instructions with their prices, as
 * text. Out: a price for each opcode row. Of several prices of an instruction, that of its name counts, then that of
 * the last group in the table below.
 */
import { unknownName } from "../base/arguments.ts";
import { OPCODES } from "./opcodes.ts";

/** The groups, by name: their instructions. */
const GROUPS: Readonly<Record<string, RegExp>> = {
  all: /./,
  variables: /^(?:local|global)\./,
  loads: /\.load|^(?:table|struct|array)\.get/,
  stores: /\.store|^(?:table|struct|array)\.set/,
  branches: /^(?:if$|br|return$|unreachable$)/,
  calls: /call/,
  divisions: /\.(?:div|rem)(?:_[su])?$|\.sqrt$/,
  floats: /^f(?:32|64)\.(?!load|store|const)/,
  vectors: /^(?:v128|[if]\d+x\d+)\./,
  atomics: /\.atomic\./,
  objects: /^(?:struct|array)\.new/,
  bulk: /^(?:memory|table|array)\.(?:copy|fill|init)/,
  growth: /^(?:memory|table)\.grow$/,
  exceptions: /throw/,
};

/** Rows that are part of another instruction or that only delimit code, and cost nothing. */
const IS_FREE = /^(?:block|loop|else|end|try|try_table|catch|catch_all|delegate)$/;

const GROUP_NAMES: readonly string[] = Object.keys(GROUPS);

/**
 * By opcode row: the price of `text` (`call=10,i32.div_s=8`) plus 1; 0 for the default. Empty without any. Throws
 * TypeError for unknown names.
 */
export function pricesOf(text: string): Uint8Array {
  if (text === "") return new Uint8Array(0);
  const given = new Map(
    text.split(",").map((entry) => {
      const at = entry.lastIndexOf("=");
      return [entry.slice(0, at), Number(entry.slice(at + 1))];
    }),
  );
  const priced = OPCODES.filter(({ mnemonic }) => !IS_FREE.test(mnemonic));
  const known = [...GROUP_NAMES, ...priced.map(({ mnemonic }) => mnemonic)];
  for (const name of given.keys()) {
    if (!known.includes(name)) throw unknownName("group or instruction of fuelPrices", name, known);
  }
  const prices = new Uint8Array(OPCODES.length);
  for (const { id, mnemonic } of priced) {
    const groups = GROUP_NAMES.filter((name) => given.has(name) && GROUPS[name].test(mnemonic));
    const price = given.get(mnemonic) ?? given.get(groups.at(-1) ?? "");
    if (price !== undefined) prices[id] = price + 1;
  }
  return prices;
}
