/**
 * The names of the imports, or of the exports, of one scope: their uniqueness, and the rules of annotated names
 * (Binary, "Import and Export Definitions").
 */
import { invalid } from "../model/invalid.ts";
import {
  canonicalName,
  type ExternName,
  isCanonicalVersion,
  parseExternName,
  parseInterfaceName,
  versionFault,
} from "../model/names.ts";
import type { AnyType, Extern, FuncType } from "../model/types.ts";

export class NameSet {
  readonly #what: string;
  readonly #namesResources: boolean;
  /** Names by their canonical forms. */
  readonly #names = new Map<string, string>();
  /** Names of resource types, by the node that the import or export introduced. */
  readonly #resources = new Map<AnyType, string>();
  readonly #resourceNames = new Set<string>();

  /** `what` is "import" or "export"; an instance made of exports does not name the resource types that it exports. */
  constructor(what: string, namesResources = true) {
    this.#what = what;
    this.#namesResources = namesResources;
  }

  /** Adds a name with its type. Throws InvalidError at `offset`. */
  add(name: string, extern: Extern, offset: number): void {
    const parsed = parseExternName(name, offset);
    checkAttributes(name, parsed, extern, offset);
    const canonical = canonicalName(name);
    const previous = this.#names.get(canonical);
    if (previous !== undefined) {
      throw invalid(`${this.#what} name \`${name}\` conflicts with previous name \`${previous}\``, offset);
    }
    this.#names.set(canonical, name);
    if (parsed.kind !== "plain" && parsed.kind !== "interface") {
      const fault = this.#annotationFault(parsed, extern);
      if (fault !== undefined) throw invalid(`${this.#what} name \`${name}\` is not valid: ${fault}`, offset);
    }
    if (this.#namesResources && extern.kind === "type" && extern.type.kind === "resource") {
      this.#resources.set(extern.type, name);
      this.#resourceNames.add(name);
    }
  }

  #annotationFault(
    name: Exclude<ExternName, { kind: "plain" | "interface" }>,
    extern: Extern,
  ): string | undefined {
    if (extern.kind !== "func") return `\`${extern.kind}\` is not a func`;
    switch (name.kind) {
      case "constructor":
        return this.#constructorFault(name.resource, extern.type);
      case "method":
        return this.#methodFault(name.resource, extern.type);
      case "static":
        return this.#resourceNames.has(name.resource) ? undefined : "static resource name is not known in this context";
    }
  }

  #constructorFault(resource: string, { result }: FuncType): string | undefined {
    if (result === undefined) return "function should return one value";
    const own = result.kind === "result" ? result.ok : result;
    if (own?.kind !== "own") return "function should return `(own $T)` or `(result (own $T))`";
    return this.#resourceFault(own.resource, resource);
  }

  #methodFault(resource: string, { params }: FuncType): string | undefined {
    if (params.length === 0) return "function should have at least one argument";
    const [self] = params;
    if (self.name !== "self") return "function should have a first argument called `self`";
    if (self.type.kind !== "borrow") return "function should take a first argument of `(borrow $T)`";
    return this.#resourceFault(self.type.resource, resource);
  }

  #resourceFault(resource: AnyType, expected: string): string | undefined {
    const name = this.#resources.get(resource);
    if (name === undefined) return "resource used in function does not have a name in this context";
    return name === expected ? undefined : `function does not match expected resource name \`${name}\``;
  }
}

function checkAttributes(name: string, parsed: ExternName, extern: Extern, offset: number): void {
  const { attributes } = extern;
  if (attributes?.implements !== undefined) {
    if (extern.kind !== "instance") throw invalid("only instances can have an `implements`", offset);
    if (parsed.kind !== "plain") throw invalid(`name \`${name}\` is not valid with \`implements\``, offset);
    checkInterface(attributes.implements, offset);
  }
  if (attributes?.versionSuffix !== undefined) checkVersionSuffix(name, parsed, attributes.versionSuffix, offset);
}

function checkInterface(name: string, offset: number): void {
  if (name === "") throw invalid("`` is not a valid name: `implements` must be an interface", offset);
  if (!name.includes(":")) throw invalid(`\`${name}\` must be an interface`, offset);
  parseInterfaceName(name, offset);
}

function checkVersionSuffix(name: string, parsed: ExternName, suffix: string, offset: number): void {
  const version = parsed.kind === "interface" ? parsed.version ?? "" : "";
  if (!isCanonicalVersion(version)) {
    throw invalid(`name \`${name}\` is not valid with \`versionsuffix\` \`${suffix}\``, offset);
  }
  const fault = versionFault(version + suffix);
  if (fault !== undefined) throw invalid(`\`${version}${suffix}\` is not a version: ${fault}`, offset);
}
