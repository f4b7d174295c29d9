/**
 * The world of a component plugin for reviews: each import and export in the notation of WIT, beside the authorities
 * that open it.
 *
 * In: a definition. Out: rows in code-unit order, imports first; for two definitions, the imports that are new.
 * The definition's world is that of the component (link_check.ts).
 */
import type { DefinedWorld, Definition } from "./definition.ts";
import { hostInterface, splitInterface } from "./wit_interfaces.ts";

/** A line of a world, such as `import wasi:random/random@0.2.0;`, and its authorities or its contract. */
interface WorldRow {
  readonly wit: string;
  /** The authorities that open an import, or the contract of an import or export; empty for all others. */
  readonly note: string;
}

/** The rows of a definition; none for a module. */
export function worldRows({ world, authorities, consumes, provides }: Definition): WorldRow[] {
  if (world === undefined) return [];
  const requested = new Set(authorities.map(({ name }) => name));
  const imports = [...world.imports].sort().map((name) => {
    const contract = consumes.find((c) => c.interface === name);
    const row = hostInterface(name);
    const opened = typeof row === "string" ? [] : row.authorities.filter((authority) => requested.has(authority));
    const note = contract === undefined ? opened.join(", ") : `consumes ${contract.id}@${contract.major}`;
    return { wit: `import ${name};`, note };
  });
  const exports = [...world.exports].sort().map((name) => {
    const contract = provides.find((c) => c.interface === name);
    return { wit: `export ${name};`, note: contract === undefined ? "" : `provides ${contract.id}@${contract.major}` };
  });
  return [...imports, ...exports];
}

/** The imports of `now` that `before` lacks in every version. */
export function newImports(before: DefinedWorld | undefined, now: DefinedWorld | undefined): string[] {
  const plain = (name: string) => splitInterface(name)?.plain ?? name;
  const known = new Set(before?.imports.map(plain));
  return [...now?.imports ?? []].sort().filter((name) => !known.has(plain(name)));
}
