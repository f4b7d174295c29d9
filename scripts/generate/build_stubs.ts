/**
 * `deno task build:stubs [--check]`: writes the stubs of both backends as data (codegen/stored_stubs.ts), the stub
 * programs of host and runtime (stub_programs.ts), and the intrinsic modules in binary form. In: the generators of the
 * stubs, and the texts of programs and modules. Out: engine/backend_ARCH/generated_stubs.ts, the files of
 * `PROGRAM_FILES` and of `INTRINSICS`. With `--check` nothing is written, and status 1 reports an outdated file.
 */
import process from "node:process";
import { isDeepStrictEqual } from "node:util";
import { layoutContext } from "../../engine/abi/context_layout.ts";
import { GENERATOR as ARM64 } from "../../engine/backend_arm64/stub_generator.ts";
import { GENERATOR as X64 } from "../../engine/backend_x64/stub_generator.ts";
import { FILLER } from "../../engine/codegen/align_image.ts";
import { CALL_COLUMNS, MachineCode } from "../../engine/codegen/machine_code.ts";
import {
  type StoredImages,
  type StoredStubs,
  type StoredThunks,
  stubVariant,
} from "../../engine/codegen/stored_stubs.ts";
import type { AllThunkParts } from "../../engine/codegen/stored_thunks.ts";
import type { CodegenContext, StubGenerator, Target } from "../../engine/codegen/target.ts";
import { COLLECTOR_CODE } from "../../engine/gc/collector_code.ts";
import type { SystemName } from "../../engine/host/systems/systems.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";
import { STRING_CODE } from "../../engine/runtime/strings/string_code.ts";
import { Statistics } from "../../engine/base/statistics.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { runGenerator } from "./generated_files.ts";
import { programFiles } from "./stub_programs.ts";

export const FOLDER = new URL("../../engine/", import.meta.url);
/** The exported constant of a generated file. */
const NAME = "STUBS";

/** The generators of one backend. */
interface StubGenerators extends StubGenerator {
  readonly name: Target["name"];
  readonly systems: readonly SystemName[];
  /** The byte between stubs. */
  readonly filler: number;
}

export const GENERATORS: readonly StubGenerators[] = [
  {
    ...X64,
    name: "x64",
    systems: ["linux", "darwin", "windows"],
    filler: FILLER.x64,
  },
  {
    ...ARM64,
    name: "arm64",
    systems: ["linux", "darwin"],
    filler: FILLER.arm64,
  },
];

/** A context for stubs with the tags at `tagsOffset`. */
export function stubContext(parts: Partial<CodegenContext>, tagsOffset?: number): CodegenContext {
  const shape = { memories: 1, tables: 1, globals: 2, importedFuncs: 3, definedFuncs: 4, types: 5 };
  const layout = layoutContext(shape);
  return {
    layout: tagsOffset === undefined ? layout : { ...layout, tagsOffset },
    explicitBounds: false,
    fuel: false,
    signatures: [],
    functionSignature: new Int32Array(0),
    optimizations: optimizationSet(),
    statistics: new Statistics(),
    cpu: new Set(),
    stackFence: false,
    ...parts,
  };
}

/** The stubs as the generator emits them. */
export function generatedStubs(emitStubs: Target["emitStubs"], context: CodegenContext): MachineCode {
  const code = new MachineCode(0, 0);
  emitStubs(context, code);
  return code;
}

/** Two values of the tags' offset that differ in each byte, so that a comparison finds all bytes of displacements. */
const OFFSETS = [0x01010100, 0x02020208] as const;

/** A stub. Offsets are relative to its start. */
interface Stub {
  readonly number: number;
  readonly code: string;
  readonly relocs: readonly (readonly number[])[];
  readonly calls: readonly (readonly number[])[];
  readonly tags: readonly (readonly number[])[];
}

/** The image stubs of one variant, in their order, without the padding between them. */
function imageStubs(emitStubs: Target["emitStubs"], parts: Partial<CodegenContext>, filler: number): Stub[] {
  const [image, other] = OFFSETS.map((offset) => generatedStubs(emitStubs, stubContext(parts, offset)));
  const starts = [...image.stubStart.entries()].filter(([, start]) => start >= 0).toSorted(([, a], [, b]) => a - b);
  return starts.map(([number, start], k) => {
    let end = starts[k + 1]?.[1] ?? image.length;
    if (k + 1 < starts.length) { while (end > start && image.bytes[end - 1] === filler) end--; }
    const bytes = image.bytes.slice(start, end);
    const tags: number[][] = [];
    for (let at = start; at < end; at++) {
      if (image.bytes[at] === other.bytes[at]) continue;
      tags.push([at - start]);
      bytes.fill(0, at - start, at - start + 4);
      at += 3;
    }
    const relocs = image.relocAt.flatMap((at, r) =>
      at >= start && at < end ? [[at - start, image.relocKind[r], image.relocTarget[r]]] : []
    );
    const calls: number[][] = [];
    for (let row = 0; row < image.callRows.length; row += CALL_COLUMNS) {
      const [at, ...rest] = image.callRows.subarray(row, row + CALL_COLUMNS);
      if (at > start && at <= end) calls.push([at - start, ...rest]);
    }
    return { number, code: bytes.toBase64(), relocs, calls, tags };
  });
}

/**
 * The properties on which image stubs depend (stubVariant), for all variants: on any processor, `cpus` are the lists of
 * optional instructions.
 */
export function stubVariants(cpus: readonly (readonly string[])[] = [[], ["avx"]]): Partial<CodegenContext>[] {
  const flags = [false, true];
  return flags.flatMap((explicitBounds) =>
    flags.flatMap((fuel) =>
      flags.flatMap((continuations) =>
        flags.flatMap((descriptors) =>
          (["counted", "logged"] as const).flatMap((stack) =>
            cpus.map((cpu) => ({ explicitBounds, fuel, continuations, descriptors, stack, cpu: new Set(cpu) }))
          )
        )
      )
    )
  );
}

/** The stubs of all variants. The order of their numbers is that of the variant with the most stubs. */
function storedImages({ emitStubs, filler }: StubGenerators): StoredImages {
  const all = stubVariants().map((parts) => ({
    variant: stubVariant(stubContext(parts)),
    stubs: imageStubs(emitStubs, parts, filler),
  }));
  const order = all.map(({ stubs }) => stubs.map(({ number }) => number)).reduce((a, b) => b.length > a.length ? b : a);
  const found = new Map<string, { stub: Stub; variants: Set<number> }>();
  for (const { variant, stubs } of all) {
    for (const stub of stubs) {
      const key = JSON.stringify(stub);
      const known = found.get(key);
      if (known === undefined) found.set(key, { stub, variants: new Set([variant]) });
      else known.variants.add(variant);
    }
  }
  const rows = [...found.values()].toSorted((a, b) => order.indexOf(a.stub.number) - order.indexOf(b.stub.number));
  const codes = rows.map(({ stub }) => Uint8Array.fromBase64(stub.code));
  const bits = (variants: Set<number>, first: number): number =>
    [...variants].reduce((word, variant) => variant >> 5 === first >> 5 ? word | 1 << variant : word, 0);
  const listed = (key: "relocs" | "calls" | "tags") =>
    rows.flatMap(({ stub }, index) => stub[key].flatMap((row) => [index, ...row]));
  return {
    code: Uint8Array.from(codes.flatMap((code) => [...code])).toBase64(),
    stubs: rows.flatMap(({ stub }, index) => [stub.number, codes[index].length]),
    variants: rows.flatMap(({ variants }, index) =>
      variants.size === all.length ? [] : [index, bits(variants, 0), bits(variants, 32)]
    ),
    relocs: listed("relocs"),
    calls: listed("calls"),
    tags: listed("tags"),
  };
}

/** Parts of thunks for one list of optional instructions. Throws an Error if bounds or fuel change them. */
function partsOf({ name, thunkParts }: StubGenerators, cpu: readonly string[]): AllThunkParts<string> {
  const [parts, others] = [false, true].map((flag) =>
    thunkParts(stubContext({ explicitBounds: flag, fuel: flag, cpu: new Set(cpu) }))
  );
  if (!isDeepStrictEqual(parts, others)) throw new Error(`the thunks of ${name} depend on bounds or fuel`);
  return encoded(parts) as AllThunkParts<string>;
}

/** A value with base64 in place of bytes. */
function encoded(value: unknown): unknown {
  if (value instanceof Uint8Array) return value.toBase64();
  if (Array.isArray(value)) return value.map(encoded);
  return Object.fromEntries(Object.entries(value as object).map(([key, entry]) => [key, encoded(entry)]));
}

function storedThunks(generators: StubGenerators): StoredThunks {
  const [plain, avx] = [[], ["avx"]].map((cpu) => partsOf(generators, cpu));
  return isDeepStrictEqual(plain, avx) ? { plain } : { plain, avx };
}

function storedStubs(generators: StubGenerators): StoredStubs {
  const { processStubs, cacheMaintenance, systems } = generators;
  const process = Object.fromEntries(systems.map((os) => {
    const { bytes, ...rest } = processStubs(os);
    return [os, JSON.stringify({ code: bytes.toBase64(), ...rest })];
  }));
  return {
    images: JSON.stringify(storedImages(generators)),
    thunks: JSON.stringify(storedThunks(generators)),
    process,
    ...(cacheMaintenance && { cacheMaintenance: cacheMaintenance().toBase64() }),
  };
}

/** A value of strings and numbers as TypeScript. */
function literal(value: unknown, indent = ""): string {
  if (typeof value === "string") return `'${value}'`;
  if (typeof value !== "object" || value === null) return String(value);
  const inner = `${indent}  `;
  const rows = Array.isArray(value)
    ? value.map((entry) => `${inner}${literal(entry, inner)},\n`)
    : Object.entries(value).map(([key, entry]) => `${inner}"${key}": ${literal(entry, inner)},\n`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}\n${rows.join("")}${indent}${close}`;
}

/** The intrinsic modules: the generated file, its constant, the source file, and the module's text. */
const INTRINSICS: readonly (readonly [file: string, constant: string, source: string, text: string])[] = [
  ["gc/generated_collector.ts", "COLLECTOR_MODULE", "gc/collector_code.ts", COLLECTOR_CODE],
  ["runtime/strings/generated_strings.ts", "STRING_MODULE", "runtime/strings/string_code.ts", STRING_CODE],
];

function stubFile(generators: StubGenerators): [string, string] {
  return [
    `backend_${generators.name}/generated_stubs.ts`,
    `/** The stubs of ${generators.name} (codegen/stored_stubs.ts). Generated by \`deno task build:stubs\`. */
import type { StoredStubs } from "../codegen/stored_stubs.ts";

// deno-fmt-ignore
export const ${NAME}: StoredStubs = ${literal(storedStubs(generators))};
`,
  ];
}

/** The generated files by path below engine/. */
export function generatedFiles(): Map<string, string> {
  const intrinsics = INTRINSICS.map(([file, constant, source, text]): [string, string] => [
    file,
    `/** The binary form of ${source}, in base64. Generated by \`deno task build:stubs\`. */
export const ${constant}: string =
  "${parseModule(text).bytes.toBase64()}";
`,
  ]);
  return new Map([...GENERATORS.map(stubFile), ...intrinsics, ...programFiles()]);
}

if (import.meta.main) {
  const about = "Writes the stubs of both backends, stub programs and intrinsic modules as data.";
  process.exit(await runGenerator("task build:stubs", about, "engine/", FOLDER, generatedFiles));
}
