/**
 * Thunks of any signature without code generation. In: the parts of a backend's thunks that do not depend on a
 * signature, which `deno task build:stubs` stores, and the fields that the backend fills in. Out: the code of the thunk
 * with its relocation and call site, byte for byte as the backend's thunks.ts emits it; a test compares both.
 *
 *     entry  start · overflow buffer ← slots · ready · registers ← slots · CALL ·
 *            resume · slots ← overflow buffer · slots ← registers · end
 *     host   start · slots ← overflow buffer · ready · slots ← registers · JUMP to PARK ·
 *            resume · overflow buffer ← slots · registers ← slots · end
 */
import { fromBase64 } from "../base/base64.ts";
import { alignImage, FUNCTION_ALIGNMENT } from "./align_image.ts";
import { appendBytes } from "./append_bytes.ts";
import { type MachineCode, RELOC, STUB } from "./machine_code.ts";
import { type Signature, TY } from "../ir/types.ts";
import { threadSlot } from "./thunks.ts";

/** Functions that JavaScript calls have entry thunks, imported ones host thunks. */
export type ThunkKind = "entry" | "host";

/** Code that moves parameters or results. `Bytes` are in base64 where they are stored. */
interface ValueParts<Bytes> {
  /** Begins to copy entries between the overflow buffer and the slots; their range is filled in. */
  readonly range: Bytes;
  /** Copies them. The backend says which form a range has; its end is filled in if it is not in `range`. */
  readonly loops: readonly Bytes[];
  /** Moves a value between a register and its slot, both filled in: by type, from TY.I32 to TY.V128. */
  readonly moves: readonly Bytes[];
}

/** The parts of thunks of one kind. */
interface ThunkParts<Bytes> {
  readonly start: Bytes;
  readonly ready: Bytes;
  /** The call, or the jump to PARK, at the end of which execution goes on. */
  readonly leave: Bytes;
  readonly resume: Bytes;
  readonly end: Bytes;
  readonly params: ValueParts<Bytes>;
  readonly results: ValueParts<Bytes>;
}

/** The parts of all thunks of images for one processor. */
export type AllThunkParts<Bytes> = Readonly<Record<ThunkKind, ThunkParts<Bytes>>>;

/** Decodes stored parts. */
export function decodeThunks({ entry, host }: AllThunkParts<string>): AllThunkParts<Uint8Array> {
  return { entry: decodeParts(entry), host: decodeParts(host) };
}

function decodeParts(
  { start, ready, leave, resume, end, params, results }: ThunkParts<string>,
): ThunkParts<Uint8Array> {
  return {
    start: fromBase64(start),
    ready: fromBase64(ready),
    leave: fromBase64(leave),
    resume: fromBase64(resume),
    end: fromBase64(end),
    params: decodeValues(params),
    results: decodeValues(results),
  };
}

function decodeValues({ range, loops, moves }: ValueParts<string>): ValueParts<Uint8Array> {
  return { range: fromBase64(range), loops: loops.map(fromBase64), moves: moves.map(fromBase64) };
}

/** How a backend completes the parts. */
export interface ThunkEncoding {
  /** Physical register per parameter and per result, −1 for the overflow buffer. */
  params(types: Uint8Array): Int8Array;
  results(types: Uint8Array): Int8Array;
  /** Distance from the stack pointer to the return address at a call site. */
  readonly frame: number;
  /** The register of the thread in an entry thunk if it is a parameter's too, which is then loaded last. */
  readonly threadRegister?: number;
  /** Copies a part of `moves`, with a register and the offset of the slot from the thread state. */
  move(part: Uint8Array, type: number, register: number, offset: number): Uint8Array;
  /** Copies `range` and one of `loops`, for entries from `first` up to, but not including, `end`. */
  copy(parts: ValueParts<Uint8Array>, first: number, end: number): readonly Uint8Array[];
}

/** Bytes of the field for the target, at the end of the jump to PARK. */
const TARGET_BYTES = 4;

/** Appends a thunk to an image. Returns its offset. */
export function appendThunk(
  code: MachineCode,
  filler: number,
  encoding: ThunkEncoding,
  kind: ThunkKind,
  parts: ThunkParts<Uint8Array>,
  { params, results }: Signature,
): number {
  alignImage(code, FUNCTION_ALIGNMENT, filler);
  const start = code.length;
  const last = kind === "entry" ? encoding.threadRegister : undefined;
  appendBytes(code, parts.start);
  moveValues(code, encoding, parts.params, params, encoding.params(params), parts.ready, last);
  appendBytes(code, parts.leave);
  if (kind === "host") code.addReloc(code.length - TARGET_BYTES, RELOC.STUB, STUB.PARK);
  code.addCallSite(code.length, encoding.frame, 0, 0);
  appendBytes(code, parts.resume);
  moveValues(code, encoding, parts.results, results, encoding.results(results), NOTHING, undefined);
  appendBytes(code, parts.end);
  return start;
}

const NOTHING = new Uint8Array(0);

/** Appends the moves of values at `locations`, with `between` after those of the overflow buffer. */
function moveValues(
  code: MachineCode,
  encoding: ThunkEncoding,
  parts: ValueParts<Uint8Array>,
  types: Uint8Array,
  locations: Int8Array,
  between: Uint8Array,
  lastRegister: number | undefined,
): void {
  const first = locations.indexOf(-1);
  if (first >= 0) { for (const part of encoding.copy(parts, first, types.length)) appendBytes(code, part); }
  appendBytes(code, between);
  const move = (index: number): void => {
    const type = types[index] === TY.REF ? TY.I64 : types[index];
    appendBytes(code, encoding.move(parts.moves[type - TY.I32], type, locations[index], threadSlot(index)));
  };
  let last = -1;
  for (let index = 0; index < types.length; index++) {
    if (locations[index] === lastRegister) last = index;
    else if (locations[index] >= 0) move(index);
  }
  if (last >= 0) move(last);
}
