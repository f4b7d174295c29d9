/**
 * Writes tests/encode/arm64.txt: a few random words of every instruction row of engine/backend_arm64 with their
 * disassembly, provided that llvm-mc assembles the text to the same word. Run it after adding rows: `deno run -A
 * tests/arm64/write_encodings.ts` (needs llvm-mc). Texts that llvm-mc rejects are left out (register widths too large
 * for a shift, unpredictable pairs); a text that it assembles to another word ends the run with an error.
 */
import { decode, instructionText } from "../../engine/backend_arm64/disassemble.ts";
import { logicalImmediate, logicalValue } from "../../engine/backend_arm64/immediates.ts";
import { INSTRUCTION_ROWS, ROW_BITS, ROW_MASK } from "../../engine/backend_arm64/instructions.ts";

const PER_ROW = 5;
const TRIES = 400;
const BATCH = 24;

let seed = 0;
/** Starts the random numbers of a row, so that the lines of a row do not depend on the rows before it. */
function seedWith(key: string): void {
  seed = 1;
  for (const char of key) seed = (Math.imul(seed, 31) + char.charCodeAt(0)) | 0;
}

function random(): number {
  seed = (Math.imul(seed, 1103515245) + 12345) | 0;
  return (seed >>> 8) & 0xffffff;
}

/** Whether a logical immediate is in the form that an assembler produces. */
function isCanonical(row: number, word: number): boolean {
  if (!INSTRUCTION_ROWS[row].text.includes("#L")) return true;
  const wide = INSTRUCTION_ROWS[row].key.endsWith("64");
  const field = decode(word)!.i;
  if (!wide && field >> 12 !== 0) return false;
  const { low, high } = logicalValue(field);
  return logicalImmediate(low, wide ? high : low) === field;
}

/** Random words of a row. */
function wordsOf(row: number): number[] {
  if (ROW_MASK[row] === -1) return [ROW_BITS[row]];
  const words: number[] = [];
  seedWith(INSTRUCTION_ROWS[row].key);
  for (let t = 0; t < TRIES && words.length < BATCH; t++) {
    const word = ROW_BITS[row] | ((random() ^ (random() << 12)) & ~ROW_MASK[row]);
    if (decode(word)?.row === row && isCanonical(row, word)) words.push(word);
  }
  return words;
}

async function assemble(texts: string[]): Promise<(number | undefined)[]> {
  const process = new Deno.Command("llvm-mc", {
    args: ["-triple=aarch64", "-mattr=+v8.1a", "-show-encoding"],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = process.stdin.getWriter();
  const written = writer.write(new TextEncoder().encode(texts.join("\n") + "\n")).then(() => writer.close());
  const { stdout, stderr } = await process.output();
  await written;
  const rejected = new Set<number>();
  for (const [, line] of new TextDecoder().decode(stderr).matchAll(/<stdin>:(\d+):\d+: error/g)) {
    rejected.add(Number(line) - 1);
  }
  const encodings = [...new TextDecoder().decode(stdout).matchAll(/encoding: \[(.*)\]/g)];
  let next = 0;
  return texts.map((_, i) => {
    if (rejected.has(i)) return undefined;
    const bytes = encodings[next++][1].split(",").map(Number);
    return bytes[0] | (bytes[1] << 8) | (bytes[2] << 16) | (bytes[3] << 24);
  });
}

const words = INSTRUCTION_ROWS.flatMap((_, row) => wordsOf(row));
const texts = words.map(instructionText);
const assembled = await assemble(texts);
const perRow = new Map<number, number>();
let file = "; Encodings of every instruction row of engine/backend_arm64, a few lines each: word | text.\n" +
  "; llvm-mc (aarch64) assembles each text to its word; written by tests/arm64/write_encodings.ts.\n";
for (const [i, word] of words.entries()) {
  if (assembled[i] === undefined) continue;
  if (assembled[i] !== word) {
    throw new Error(`"${texts[i]}" is ${assembled[i].toString(16)}, not ${word.toString(16)}`);
  }
  const { row } = decode(word)!;
  const known = perRow.get(row) ?? 0;
  perRow.set(row, known + 1);
  if (known < PER_ROW) file += `${(word >>> 0).toString(16).padStart(8, "0")} | ${texts[i]}\n`;
}
const missing = INSTRUCTION_ROWS.filter((_, row) => !perRow.has(row)).map(({ key }) => key);
if (missing.length > 0) throw new Error(`No line for ${missing.join(", ")}`);
Deno.writeTextFileSync(new URL("../encode/arm64.txt", import.meta.url), file);
