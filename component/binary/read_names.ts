/**
 * Names of imports and exports with their attributes, and sorts (Binary, "Import and Export Definitions" and "Instance
 * Definitions"). In: a reader at the name or sort.
 */
import {
  COMPONENT_SORTS,
  type ComponentSort,
  CORE_SORTS,
  type CoreSort,
  type Sort,
  type SortIndex,
} from "../model/definitions.ts";
import type { ExternAttributes } from "../model/types.ts";
import { InvalidError } from "@waft/engine/internal/errors";
import type { ComponentReader } from "./component_reader.ts";

const CORE_SORT_NAMES: ReadonlyMap<number, CoreSort> = byCode<CoreSort>(CORE_SORTS);
const SORT_NAMES: ReadonlyMap<number, ComponentSort> = byCode<ComponentSort>(COMPONENT_SORTS);

function byCode<K extends string>(codes: Readonly<Record<K, number>>): ReadonlyMap<number, K> {
  return new Map((Object.keys(codes) as K[]).map((name) => [codes[name], name]));
}

/** A core sort; `construct` names it in errors. */
export function readCoreSort(reader: ComponentReader, construct = "core sort"): CoreSort {
  return CORE_SORT_NAMES.get(reader.u8()) ?? reader.badByte(construct);
}

/** A sort. */
export function readSort(reader: ComponentReader, construct = "component external kind"): Sort {
  const code = reader.u8();
  if (code === 0x00) return `core ${readCoreSort(reader, construct)}`;
  return SORT_NAMES.get(code) ?? reader.badByte(construct);
}

/** A sort and an index. */
export function readSortIndex(reader: ComponentReader): SortIndex {
  return { sort: readSort(reader), index: reader.u32() };
}

const ATTRIBUTES = ["implements", "versionSuffix", "externalId"] as const;
const ATTRIBUTE_NAMES = ["implements", "versionsuffix", "external-id"] as const;

function readAttributes(reader: ComponentReader): ExternAttributes {
  const attributes: { -readonly [K in keyof ExternAttributes]: ExternAttributes[K] } = {};
  reader.items("attributes", () => {
    const offset = reader.offset;
    const code = reader.u8();
    const key = ATTRIBUTES[code] ?? reader.badByte("name option");
    if (attributes[key] !== undefined) {
      throw new InvalidError(`duplicate '${ATTRIBUTE_NAMES[code]}' option in name`, { offset });
    }
    attributes[key] = reader.name();
  });
  return attributes;
}

/** The name of an import or export, with its attributes. */
export function readExternName(reader: ComponentReader): { name: string; attributes?: ExternAttributes } {
  switch (reader.u8()) {
    case 0x00:
    case 0x01:
      return { name: reader.name() };
    case 0x02: {
      const name = reader.name();
      const attributes = readAttributes(reader);
      return Object.keys(attributes).length === 0 ? { name } : { name, attributes };
    }
    default:
      return reader.badByte("component name");
  }
}
