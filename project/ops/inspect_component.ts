/**
 * The WIT of a file: the world of a component, the worlds embedded in a core module, the packages of a component that
 * contains WIT, or of a .wit file or directory. In: a path. Out: packages.
 */
import { readFileSync, statSync } from "node:fs";
import { decodeComponent } from "../../component/binary/decode.ts";
import type { WitPackage } from "../../component/wit/document.ts";
import { embeddedWit, witOfComponent } from "../../component/wit/from_component.ts";
import { loadWit } from "../../component/wit/load.ts";
import { describeWorld, printPackage } from "../../component/wit/print.ts";
import { validateComponent } from "../../component/validate/validate_component.ts";
import { MalformedError } from "@waft/engine/internal/errors";
import { componentBytes } from "./component_bytes.ts";

/** The content of a file, for `waft inspect`. */
export interface Inspection {
  readonly kind: "component" | "core module" | "wit";
  readonly documents: readonly InspectedPackages[];
}

/** A root package, the packages that it refers to, and what WIT cannot express. */
export interface InspectedPackages {
  readonly root: WitPackage;
  readonly packages: ReadonlyMap<string, WitPackage>;
  readonly omitted: readonly string[];
}

/** Reads the file or directory at `path`. Throws the engine's errors, and those of the file system. */
export async function inspectComponent(path: string): Promise<Inspection> {
  if (path.endsWith(".wit") || statSync(path).isDirectory()) {
    return { kind: "wit", documents: [{ ...loadWit(path, { allFeatures: true }), omitted: [] }] };
  }
  const bytes = new Uint8Array(readFileSync(path));
  const component = await componentBytes(bytes);
  if (component !== undefined) {
    return { kind: "component", documents: [witOfComponent(validateComponent(decodeComponent(component)))] };
  }
  const documents = embeddedWit(bytes);
  if (documents.length === 0) {
    throw new MalformedError("this is a core module without an embedded world: `waft print` shows a module as text");
  }
  return { kind: "core module", documents };
}

/** The packages as WIT. */
export function inspectionText({ documents }: Inspection): string {
  return documents.map(({ root, packages, omitted }) => {
    const notes = omitted.map((note) => `// omitted: ${note}\n`).join("");
    return `${notes}${printPackage(root, packages.values())}`;
  }).join("\n");
}

/** The worlds as plain data. */
export function inspectionData({ kind, documents }: Inspection): object {
  return {
    kind,
    worlds: documents.flatMap(({ root }) => [...root.worlds.values()].map((world) => describeWorld(world))),
    omitted: documents.flatMap(({ omitted }) => omitted),
  };
}
