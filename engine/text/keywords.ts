/**
 * The keywords of the text format and of its scripts, as numbers: an instruction's keyword is the id of its opcode row,
 * every other keyword is STRUCTURAL or more.
 *
 * Words that are both (`catch`, `else`, `end`, `delegate`, …) have the row's number; K has them under their own name
 * too, so that a parser compares one integer for every word. Specification, 6.3.2.
 */
import { idOf, OPCODES } from "../wasm/opcodes.ts";
import { SymbolTable } from "./symbols.ts";

/** Keywords that are not instructions start here. */
export const STRUCTURAL = 0x1000;

const WORDS = [
  // types (specification, 6.4)
  ...["i32", "i64", "f32", "f64", "v128", "i8", "i16", "ref", "null", "mut", "shared", "unshared"],
  "pagesize",
  ...["func", "extern", "any", "eq", "i31", "struct", "array", "exn", "noexn", "nofunc", "noextern", "none"],
  ...["cont", "nocont", "contref", "nullcontref", "on", "assert_suspension"],
  ...["funcref", "externref", "anyref", "eqref", "i31ref", "structref", "arrayref", "exnref"],
  ...["nullexnref", "nullref", "nullfuncref", "nullexternref"],
  ...["exact", "describes", "descriptor"],
  ...["type", "rec", "sub", "final", "field", "param", "result", "local"],
  // words inside instructions
  ...["then", "do", "catch_ref", "catch_all_ref", "acqrel", "seqcst"],
  ...["i8x16", "i16x8", "i32x4", "i64x2", "f32x4", "f64x2"],
  // module fields
  ...["module", "import", "export", "table", "memory", "global", "tag", "start", "elem", "data", "offset", "item"],
  ...["declare", "binary", "quote", "definition", "instance"],
  // placements of custom sections
  ...["before", "after", "first", "last", "code", "datacount"],
  // scripts
  ...["register", "invoke", "get", "either", "thread", "wait", "ref.extern", "ref.host", "ref.any", "ref.eq"],
  ...["ref.struct", "ref.array", "ref.exn", "nan:canonical", "nan:arithmetic", "script", "input", "output"],
  ...["assert_return", "assert_trap", "assert_exhaustion", "assert_exception", "assert_malformed", "assert_invalid"],
  ...["assert_unlinkable", "assert_malformed_custom", "assert_invalid_custom"],
] as const;

/** Rows whose keyword is also structural. */
const ROW_WORDS = [
  ...["block", "loop", "if", "else", "end", "try", "try_table", "catch", "catch_all", "delegate", "select"],
  ...["switch", "ref.null", "ref.func", "ref.i31", "ref.test", "ref.cast", "v128.const"],
  ...["i32.const", "i64.const", "f32.const", "f64.const", "atomic.fence"],
] as const;

type Word = (typeof WORDS)[number] | (typeof ROW_WORDS)[number];

/** The number of each keyword that a parser refers to by name. */
export const K: Readonly<Record<Word, number>> = numberWords();

/** Numbers the words in order. A word that is also an instruction (`ref.eq`) keeps the number of its row. */
function numberWords(): Record<Word, number> {
  const numbers = {} as Record<Word, number>;
  for (const word of WORDS) numbers[word] = STRUCTURAL + Object.keys(numbers).length;
  for (const word of ROW_WORDS) numbers[word] = idOf(word);
  numbers["ref.eq"] = idOf("ref.eq");
  return numbers;
}

const TABLE = new SymbolTable(0x2545f491);
/** Filled by the first text: most programs compile the binary format only. */
let numberBySymbol: Int16Array | undefined;

function fillTable(): Int16Array {
  const encoder = new TextEncoder();
  const entries: [string, number][] = [...Object.entries(K)];
  // A name with a variant in parentheses (`select(t)`) is not a keyword: the parser chooses such a row itself.
  for (const row of OPCODES) if (!row.mnemonic.includes("(")) entries.push([row.mnemonic, row.id]);
  const numbers = new Int16Array(entries.length);
  for (const [word, number] of entries) {
    const bytes = encoder.encode(word);
    numbers[TABLE.intern(bytes, 0, bytes.length)] = number;
  }
  return numbers;
}

/** The number of the keyword `bytes[start..end)`, or −1. */
export function keywordNumber(bytes: Uint8Array, start: number, end: number): number {
  numberBySymbol ??= fillTable();
  const symbol = TABLE.find(bytes, start, end);
  return symbol < 0 ? -1 : numberBySymbol[symbol];
}
