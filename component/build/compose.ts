/**
 * Composition: components → one component. In: a component, and components whose exports satisfy its imports. Out: a
 * component in binary form, which contains them, imports the rest of their imports, and exports the exports of the
 * first. Invariant: an import is satisfied by the export of the same name, or else of a compatible version.
 */
import { InvalidError } from "@waft/engine/internal/errors";
import { decodeComponent } from "../binary/decode.ts";
import type { ComponentType, Extern } from "../model/types.ts";
import { validateComponent } from "../validate/validate_component.ts";
import { interfaceId, type WitInterface, type WitWorld, type WorldItem } from "../wit/document.ts";
import { worldsTogether } from "../wit/from_component.ts";
import { trackOf } from "./core_imports.ts";
import { translated } from "./translated.ts";
import { allLive, Identifiers, itemsInOrder, itemText, quoted, TypeNames } from "./type_text.ts";

/** A component, and the name of its file for errors. */
export interface Part {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** A part with its type, and the source of each of its imports: a part before it, or the composition's imports. */
interface PlannedPart extends Part {
  readonly type: ComponentType;
  readonly sources: ReadonlyMap<string, { readonly part: number; readonly name: string } | undefined>;
}

/** The word for a kind of item in the text format. */
const SORTS = {
  module: "core module",
  func: "func",
  value: "value",
  type: "type",
  component: "component",
  instance: "instance",
} as const satisfies Record<Extern["kind"], string>;

/**
 * Composes `plugs` with `socket`; a plug may use the exports of plugs before it. Throws InvalidError if a plug
 * satisfies no import, or if types do not match.
 */
export function composeComponents(socket: Part, plugs: readonly Part[]): Uint8Array {
  const parts = plan([...plugs, socket]);
  const ids = new Identifiers();
  const { lines, items } = importText(parts, ids);
  parts.forEach((_, k) => lines.push(`(component $part${k})`));
  parts.forEach((part, k) => lines.push(`(instance $instance${k} (instantiate $part${k}${args(part, items)}))`));
  const last = parts.length - 1;
  for (const [name, { kind }] of parts[last].type.exports) {
    lines.push(`(export ${quoted(name)} (${SORTS[kind]} $instance${last} ${quoted(name)}))`);
  }
  return translated(`(component\n${lines.join("\n")})`, { components: parts.map(({ bytes }) => bytes) });
}

function plan(parts: readonly Part[]): PlannedPart[] {
  const planned: PlannedPart[] = [];
  const used = new Set<number>();
  for (const part of parts) {
    const { type } = validateComponent(decodeComponent(part.bytes));
    const sources = new Map([...type.imports.keys()].map((name) => [name, provider(planned, name)]));
    for (const source of sources.values()) if (source !== undefined) used.add(source.part);
    planned.push({ ...part, type, sources });
  }
  const idle = parts.findIndex((_, k) => k < parts.length - 1 && !used.has(k));
  if (idle < 0) return planned;
  const names = [...planned[idle].type.exports.keys()].join(", ") || "nothing";
  throw new InvalidError(`${parts[idle].name} satisfies no import: it exports ${names}`);
}

/** The part that exports `name`, exactly or in a compatible version. */
function provider(parts: readonly PlannedPart[], name: string): { part: number; name: string } | undefined {
  const track = trackOf(name);
  const tests = [(key: string) => key === name, (key: string) => track !== undefined && trackOf(key) === track];
  for (const test of tests) {
    for (const [part, { type }] of parts.entries()) {
      const found = [...type.exports.keys()].find(test);
      if (found !== undefined) return { part, name: found };
    }
  }
  return undefined;
}

/** The imports that no part satisfies, and the identifiers of their items. */
function importText(
  parts: readonly PlannedPart[],
  ids: Identifiers,
): { lines: string[]; items: ReadonlyMap<string, string> } {
  const open = new Set(
    parts.flatMap(({ sources }) => [...sources].flatMap(([name, at]) => at === undefined ? [name] : [])),
  );
  const worlds = worldsTogether(parts.map(({ type }) => ({ ...type, exports: new Map() })));
  const imports = new Map(worlds.flatMap((world) => [...world.imports].filter(([key]) => open.has(key))));
  for (const name of open) {
    if (!imports.has(name)) {
      throw new InvalidError(`the import \`${name}\` has no form in WIT, which a composition needs`);
    }
  }
  checkTypes(imports);
  const live = allLive({ ...worlds[0], imports, exports: new Map() } satisfies WitWorld);
  const names = new TypeNames();
  const items = new Map<string, string>();
  const lines = itemsInOrder(imports).map(([key, item]) => {
    const { text, id } = itemText(key, item, "import", live, names, ids);
    items.set(key, id);
    return text;
  });
  return { lines, items };
}

/** Throws if an import uses types of an interface that is not an import of the composition. */
function checkTypes(imports: ReadonlyMap<string, WorldItem>): void {
  const present = new Set([...imports.values()].flatMap((item) => item.kind === "interface" ? [item.interface] : []));
  for (const [key, item] of imports) {
    if (item.kind !== "interface") continue;
    for (const { type } of item.interface.types.values()) {
      if (type.kind !== "use") continue;
      const owner = type.target.owner as WitInterface;
      if (present.has(owner)) continue;
      throw new InvalidError(`the import \`${key}\` uses types of \`${interfaceId(owner)}\`, which a part provides`);
    }
  }
}

function args({ type, sources }: PlannedPart, items: ReadonlyMap<string, string>): string {
  return [...type.imports].map(([name, { kind }]) => {
    const source = sources.get(name);
    const target = source === undefined ? items.get(name) : `$instance${source.part} ${quoted(source.name)}`;
    return ` (with ${quoted(name)} (${SORTS[kind]} ${target}))`;
  }).join("");
}
