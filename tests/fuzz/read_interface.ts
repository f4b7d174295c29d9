/**
 * Reads the parts of a module that the fuzzer needs to drive it: types, imports and exported functions (specification,
 * 5.5). In: a valid binary module. Out: its interface. Deliberately independent of the engine's decoder.
 */
import { readType, type Signature, type TypeName } from "./value_types.ts";

export type ImportType =
  | { kind: "func"; signature: Signature }
  | { kind: "table"; type: TypeName; min: number; max: number | undefined; is64: boolean }
  | { kind: "memory"; min: number; max: number | undefined; is64: boolean; shared: boolean }
  | { kind: "global"; type: TypeName; mutable: boolean }
  | { kind: "tag"; signature: Signature };

/** The module uses a construct that the fuzzer does not support. */
export class UnknownInterface extends Error {}

export interface ModuleInterface {
  readonly imports: readonly { module: string; name: string; type: ImportType }[];
  /** Signatures by function index. */
  readonly functions: readonly Signature[];
  /** The byte ranges of bodies, by function index; undefined for imports. */
  readonly bodies: readonly ({ start: number; end: number } | undefined)[];
  /** Signatures of tags by tag index. */
  readonly tags: readonly Signature[];
  /** Function types by type index. */
  readonly types: readonly (Signature | undefined)[];
  readonly exports: readonly { name: string; kind: "func" | "table" | "memory" | "global" | "tag"; index: number }[];
}

const KINDS = ["func", "table", "memory", "global", "tag"] as const;

/** Reads the interface of a module that is known to be valid. */
export function readInterface(bytes: Uint8Array): ModuleInterface {
  let at = 8;
  const u32 = () => {
    let value = 0;
    for (let shift = 0;; shift += 7) {
      const byte = bytes[at++]!;
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  const signed = () => {
    const start = at;
    const value = u32();
    return (bytes[at - 1]! & 64) === 0 ? value : value - 2 ** (7 * (at - start));
  };
  const type = (): TypeName => {
    const start = at;
    const name = readType(() => bytes[at++]!, signed);
    if (name === undefined) throw new UnknownInterface(`type 0x${bytes[start]!.toString(16)}`);
    return name;
  };
  const text = () => {
    const length = u32();
    at += length;
    return new TextDecoder().decode(bytes.subarray(at - length, at));
  };
  const limits = () => {
    const flags = u32();
    const min = u32();
    const max = (flags & 1) !== 0 ? u32() : undefined;
    return { min, max, shared: (flags & 2) !== 0, is64: (flags & 4) !== 0 };
  };
  const signatures: (Signature | undefined)[] = [];
  const imports: { module: string; name: string; type: ImportType }[] = [];
  const functions: Signature[] = [];
  const tags: Signature[] = [];
  const bodies: { start: number; end: number }[] = [];
  let imported = 0;
  const exports: { name: string; kind: (typeof KINDS)[number]; index: number }[] = [];
  const types = () => Array.from({ length: u32() }, type);
  const storage = () => {
    if (bytes[at] === 0x78 || bytes[at] === 0x77) at++;
    else type();
    at++; // mutability
  };
  /** Reads one definition of the type section; only function types are kept. */
  const definition = () => {
    if (bytes[at] === 0x50 || bytes[at] === 0x4f) {
      at++;
      for (let n = u32(); n > 0; n--) u32();
    }
    const form = bytes[at++]!;
    if (form === 0x60) {
      const params = types();
      signatures.push({ params, results: types() });
      return;
    }
    if (form === 0x5f) { for (let n = u32(); n > 0; n--) storage(); }
    else if (form === 0x5e) storage();
    else throw new UnknownInterface(`type definition 0x${form.toString(16)}`);
    signatures.push(undefined);
  };
  const readImport = (): ImportType => {
    const kind = bytes[at++]!;
    if (kind === 0) return { kind: "func", signature: signatures[u32()]! };
    if (kind === 1) return { kind: "table", type: type(), ...limits() };
    if (kind === 2) return { kind: "memory", ...limits() };
    if (kind === 3) return { kind: "global", type: type(), mutable: bytes[at++] === 1 };
    if (kind === 4) {
      at++; // attribute
      return { kind: "tag", signature: signatures[u32()]! };
    }
    throw new UnknownInterface(`import of kind ${kind}`);
  };
  while (at < bytes.length) {
    const id = bytes[at++]!;
    const length = u32();
    const end = at + length;
    if (id === 1) {
      for (let n = u32(); n > 0; n--) {
        if (bytes[at] !== 0x4e) definition();
        else {
          at++;
          for (let m = u32(); m > 0; m--) definition();
        }
      }
    } else if (id === 2) {
      for (let n = u32(); n > 0; n--) {
        const entry = { module: text(), name: text(), type: readImport() };
        imports.push(entry);
        if (entry.type.kind === "func") imported = functions.push(entry.type.signature);
        if (entry.type.kind === "tag") tags.push(entry.type.signature);
      }
    } else if (id === 3) { for (let n = u32(); n > 0; n--) functions.push(signatures[u32()]!); }
    else if (id === 13) {
      for (let n = u32(); n > 0; n--) {
        at++; // attribute
        tags.push(signatures[u32()]!);
      }
    } else if (id === 7) {
      for (let n = u32(); n > 0; n--) {
        const name = text();
        const kind = KINDS[bytes[at++]!];
        const index = u32();
        if (kind !== undefined) exports.push({ name, kind, index });
      }
    } else if (id === 10) {
      const count = u32();
      for (let n = 0; n < count; n++) {
        const size = u32();
        bodies[imported + n] = { start: at, end: at + size };
        at += size;
      }
    }
    at = end;
  }
  return { imports, functions, bodies, tags, types: signatures, exports };
}
