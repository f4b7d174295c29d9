/**
 * Facts about an artifact: the engine and the machine that it is for, and the sizes of its machine code. In: its bytes.
 * Out: plain data. Invariant: nothing of the artifact runs.
 */
import { ArtifactError, readArtifact, requirePlaces } from "@waft/engine/internal/artifact/format";

/** Facts about an artifact. Sizes are in bytes. */
export interface ArtifactFacts {
  readonly bytes: number;
  /** The build of the engine that wrote it, which alone can load it. */
  readonly engine: string;
  /** Such as `linux/x64`. */
  readonly machine: string;
  /** Optional instruction sets that the code may use. */
  readonly cpu: readonly string[];
  /** Enabled options of the engine, `features.` and `optimizations.` included. */
  readonly options: readonly string[];
  readonly codeBytes: number;
  /** Machine code of the module's functions, the largest first. */
  readonly functions: readonly { readonly index: number; readonly bytes: number }[];
}

/** The facts about an artifact. Throws ArtifactError. */
export function artifactFacts(bytes: Uint8Array): ArtifactFacts {
  const { description, code, tables } = readArtifact(bytes);
  const { functionStart, functionEnd } = tables;
  requirePlaces(tables, code.length, functionStart.length);
  return {
    bytes: bytes.length,
    ...described(description),
    codeBytes: code.length,
    functions: Array.from(functionStart, (start, index) => ({ index, bytes: functionEnd[index] - start }))
      .sort((a, b) => b.bytes - a.bytes || a.index - b.index),
  };
}

/** The parts of a description that are shown. The artifact's author chose them. */
function described(description: unknown): Pick<ArtifactFacts, "engine" | "machine" | "cpu" | "options"> {
  const { engine, machine, cpu, options } = (description ?? {}) as { readonly [key: string]: unknown };
  if (typeof engine !== "string" || typeof machine !== "string" || !isTexts(cpu) || !isTexts(options)) {
    throw new ArtifactError("The artifact is damaged: its description is incomplete");
  }
  return { engine, machine, cpu, options };
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
