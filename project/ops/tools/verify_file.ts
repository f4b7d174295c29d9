/**
 * `waft verify`: the proofs of a file's machine code. In: the path of a module, component or artifact, and engine
 * options. Out: the result for each core module and tier. Invariant: nothing of the file runs.
 */
import { type EngineOptions, type Machine, NewEngine } from "@waft/engine";
import { type VerifiedCode, verifyArtifact, verifyModule } from "@waft/engine/internal/verify";
import { decodeComponent } from "@waft/component/internal/binary/decode";
import { componentBytes } from "./component_bytes.ts";
import { fileKind } from "./file_kind.ts";
import { coreModules } from "./core_modules.ts";
import { readInput } from "./read_input.ts";

/** The verified code of a file. */
export interface FileVerification {
  readonly kind: "core module" | "component" | "artifact";
  readonly codes: readonly VerifiedPart[];
}

/** Code of one tier of a core module; `module` is the module's number in a component. */
interface VerifiedPart extends VerifiedCode {
  readonly module?: number;
}

type Architecture = Machine["arch"];

/**
 * Verifies the code of the file at `path`; that of modules for `architecture`, by default this machine's. Rejects with
 * the engine's errors and those of the file system.
 */
export async function verifyFile(
  path: string,
  options: EngineOptions,
  architecture?: Architecture,
): Promise<FileVerification> {
  const content = readInput(path);
  const kind = fileKind(content);
  if (kind === "artifact") return { kind: "artifact", codes: [verifyArtifact(content)] };
  const binary = await componentBytes(content, kind);
  if (binary === undefined) return { kind: "core module", codes: await verifyTiers(content, options, architecture) };
  const codes: VerifiedPart[] = [];
  for (const [module, bytes] of coreModules(decodeComponent(binary)).entries()) {
    for (const code of await verifyTiers(bytes, options, architecture)) codes.push({ ...code, module });
  }
  return { kind: "component", codes };
}

/** Verifies the code of the tiers that the options name. */
async function verifyTiers(
  bytes: Uint8Array,
  options: EngineOptions,
  architecture: Architecture | undefined,
): Promise<VerifiedCode[]> {
  const engine = NewEngine(options);
  const module = engine.parse(bytes);
  const { features, optimizations, bounds, tier } = engine;
  const codes: VerifiedCode[] = [];
  for (const name of tier === "auto" ? ["optimizing", "baseline"] as const : [tier]) {
    const explicitBounds = bounds === "explicit";
    codes.push(await verifyModule(module, { features, optimizations, explicitBounds, tier: name, architecture }));
  }
  return codes;
}
