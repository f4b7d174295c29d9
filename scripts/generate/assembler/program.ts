/**
 * Assembler of stub programs: the code of host and runtime that no compiler emits, as text. In: lines in the notation
 * of the processor's manual, as llvm-mc accepts them. Out: bytes, and the offsets of the global labels. The
 * instructions are encoded from the rows of the backends (assemble_x64.ts, assemble_arm64.ts).
 *
 *     // a comment
 *     .globl name          the offset of `name` is part of the result
 *     .balign bytes, fill  pads with a byte up to a multiple
 *     .quad 0              eight bytes of data
 *     name:                a label
 *     mov rax, [rdi + 8]   an instruction
 *
 * Branches are as short as their distance allows. Throws an Error with the line for everything else.
 */

/** Machine code and the offsets of its global labels. */
export interface Assembled {
  readonly bytes: Uint8Array;
  readonly labels: Readonly<Record<string, number>>;
}

/**
 * Encodes an instruction at offset `at`. `offsetOf` returns the offset of a label, undefined in the first pass, in
 * which branches are as short as possible. A form with a label may not get shorter from pass to pass: `least` is its
 * size in the last one.
 */
export type InstructionEncoder = (
  text: string,
  at: number,
  offsetOf: (label: string) => number | undefined,
  least: number,
) => Uint8Array;

const LABEL = /^([a-z_]\w*):$/;

/** The bytes of a directive at offset `at`; undefined if the line is none. */
function directive(line: string, at: number): Uint8Array | undefined {
  const [, name, rest] = /^\.(\w+) (.*)$/.exec(line) ?? [];
  if (name === "globl") return new Uint8Array(0);
  if (name === "quad" && rest === "0") return new Uint8Array(8);
  if (name === "balign") {
    const [multiple, fill] = rest.split(",").map(Number);
    return new Uint8Array((multiple - at % multiple) % multiple).fill(fill);
  }
  return undefined;
}

/** Assembles `text` with the encoder of a processor. */
export function assembleProgram(text: string, encode: InstructionEncoder): Assembled {
  const lines = text.split("\n").map((line) => line.replace(/\/\/.*$/, "").trim()).filter((line) => line !== "");
  const names = lines.flatMap((line) => LABEL.exec(line)?.[1] ?? []);
  const twice = names.find((name, k) => names.indexOf(name) !== k);
  if (twice !== undefined) throw new Error(`${twice}: the label is there twice`);
  const labels = new Map<string, number>();
  const sizes = lines.map(() => 0);
  for (;;) {
    const known = new Map(labels);
    const offsetOf = (name: string) => {
      if (!names.includes(name)) throw new Error(`there is no label ${name}`);
      return known.get(name);
    };
    const parts: Uint8Array[] = [];
    let at = 0, isStable = true;
    lines.forEach((line, k) => {
      const label = LABEL.exec(line)?.[1];
      if (label !== undefined) {
        if (labels.get(label) !== at) isStable = false;
        labels.set(label, at);
        return;
      }
      let bytes: Uint8Array;
      try {
        bytes = directive(line, at) ?? encode(line, at, offsetOf, sizes[k]);
      } catch (error) {
        throw new Error(`${line}: ${(error as Error).message}`);
      }
      parts.push(bytes);
      at += bytes.length;
      sizes[k] = bytes.length;
    });
    if (isStable) return { bytes: joined(parts, at), labels: globals(lines, labels) };
  }
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function globals(lines: readonly string[], labels: ReadonlyMap<string, number>): Record<string, number> {
  const found: Record<string, number> = {};
  for (const line of lines) {
    const name = /^\.globl (\w+)$/.exec(line)?.[1];
    if (name === undefined) continue;
    const offset = labels.get(name);
    if (offset === undefined) throw new Error(`.globl ${name}: there is no such label`);
    found[name] = offset;
  }
  return found;
}
