/**
 * Bytes → aliases (Binary, "Alias Definitions"). In: a reader at the alias.
 */
import { type Alias, COMPONENT_SORTS, CORE_SORTS, type Sort } from "../model/definitions.ts";
import type { ComponentReader } from "./component_reader.ts";
import { readSort } from "./read_names.ts";

const OUTER_SORTS: ReadonlySet<Sort> = new Set(["core module", "core type", "component", "type"]);

/** An alias. */
export function readAlias(reader: ComponentReader): Alias {
  const pos = reader.pos;
  const sort = readSort(reader, "component outer alias kind");
  const end = reader.pos;
  switch (reader.u8()) {
    case 0x00:
      return { kind: "export", sort: exportSort(reader, sort, pos), instance: reader.u32(), name: reader.name() };
    case 0x01:
      return { kind: "core export", sort: coreSort(reader, sort, pos), instance: reader.u32(), name: reader.name() };
    case 0x02:
      if (!OUTER_SORTS.has(sort)) badSort(reader, end - 1);
      return { kind: "outer", sort, count: reader.u32(), index: reader.u32() };
    default:
      return reader.badByte("alias");
  }
}

function badSort(reader: ComponentReader, pos: number): never {
  reader.pos = pos + 1;
  return reader.badByte("component outer alias kind");
}

function exportSort(reader: ComponentReader, sort: Sort, pos: number): Extract<Alias, { kind: "export" }>["sort"] {
  if (sort === "core module" || Object.hasOwn(COMPONENT_SORTS, sort)) return sort as ReturnType<typeof exportSort>;
  return badSort(reader, pos + 1);
}

function coreSort(reader: ComponentReader, sort: Sort, pos: number): Extract<Alias, { kind: "core export" }>["sort"] {
  const isCore = sort.startsWith("core ") && Object.hasOwn(CORE_SORTS, sort.slice(5));
  return isCore ? sort as ReturnType<typeof coreSort> : badSort(reader, pos);
}
