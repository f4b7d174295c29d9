/**
 * Fetches the packages that a directory of WIT refers to (`waft wit fetch`). In: the directory, and the registries of
 * namespaces. Out: files in its `deps`, and the references with digests. Invariants: packages that are there stay as
 * they are; nothing is written unless everything was fetched, and each package has the name that was asked for.
 */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { WaftError } from "@waft/engine/internal/errors";
import { decodeComponent } from "@waft/component/internal/binary/decode";
import { validateComponent } from "@waft/component/internal/validate/validate_component";
import { witOfComponent } from "@waft/component/internal/wit/from_component";
import { missingPackages, referencesOf } from "@waft/component/internal/wit/load";
import { packageId, type WitPackage } from "@waft/component/internal/wit/document";
import { printPackage } from "@waft/component/internal/wit/print";
import { FileFailure } from "../../base/failure.ts";
import { replaceFile } from "../../base/replace_file.ts";
import { pullProgram } from "../../packages/oci/artifact.ts";
import { type VersionedPackage, witReference, type WitRegistry, witRegistry } from "../../packages/oci/wit_registry.ts";

/** The registries of namespaces that `wkg` knows without configuration. */
const DEFAULT_REGISTRIES: ReadonlyMap<string, string> = new Map([["wasi", "wasi.dev"], ["ba", "bytecodealliance.org"]]);

/** The most packages of one directory. */
const MAX_PACKAGES = 500;

/** A package that was fetched. */
interface FetchedPackage {
  /** Its name, such as `wasi:io@0.2.0`. */
  readonly id: string;
  /** The reference with its digest. */
  readonly reference: string;
  readonly file: string;
}

/** Fetches the packages that `folder` lacks. Throws FileFailure that names a package. */
export async function fetchWit(folder: string, registries: ReadonlyMap<string, string>): Promise<FetchedPackage[]> {
  const found = new Map<
    string,
    { readonly reference: string; readonly text: string; readonly name: VersionedPackage }
  >();
  const { present, missing } = inFolder(folder);
  const known = new Map<string, WitRegistry>();
  const waiting = [...missing];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const id = packageId(next);
    if (present.has(id) || found.has(id)) continue;
    try {
      if (found.size >= MAX_PACKAGES) throw new Error(`more than ${MAX_PACKAGES} packages`);
      const { version } = next;
      if (version === undefined) throw new Error("the reference to it has no version");
      const name = { ...next, version };
      const address = registries.get(name.namespace) ?? DEFAULT_REGISTRIES.get(name.namespace);
      if (address === undefined) {
        throw new Error(`no registry is known for "${name.namespace}": --registry ${name.namespace}=HOST names one`);
      }
      let registry = known.get(address);
      if (registry === undefined) known.set(address, registry = await witRegistry(address));
      const { reference, bytes } = await pullProgram(witReference(registry, name));
      const root = packageIn(bytes, id);
      found.set(id, { reference, text: printPackage(root), name });
      waiting.push(...referencesOf(printPackage(root)));
    } catch (error) {
      throw new FileFailure(id, error);
    }
  }
  return [...found].sort(([a], [b]) => a < b ? -1 : 1).map(([id, { reference, text, name }]) => {
    const parent = join(folder, "deps", `${name.namespace}-${name.name}-${name.version}`);
    const file = join(parent, "package.wit");
    mkdirSync(parent, { recursive: true });
    replaceFile(file, text);
    return { id, reference, file };
  });
}

function inFolder(folder: string): ReturnType<typeof missingPackages> {
  try {
    if (!existsSync(folder)) throw new Error("there is no such directory");
    return missingPackages(folder);
  } catch (error) {
    throw new FileFailure(error instanceof WaftError ? error.place.file ?? folder : folder, error);
  }
}

/** The package `id` in a binary that contains WIT. Throws an Error for other contents. */
function packageIn(bytes: Uint8Array, id: string): WitPackage {
  const { root } = witOfComponent(validateComponent(decodeComponent(bytes)));
  if (packageId(root.name) !== id) throw new Error(`the registry has ${packageId(root.name)} in its place`);
  return root;
}
