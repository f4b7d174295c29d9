/**
 * The worlds that core modules contain, and their union. In: custom sections in which tools embed worlds, and WIT. Out:
 * one world, whose imports and exports are those of all of them, and the string encoding of each module.
 */
import { decodeModule } from "@waft/engine/internal/binary/decode";
import { InvalidError } from "@waft/engine/internal/errors";
import type { Module } from "@waft/engine/internal/wasm/module";
import { decodeComponent } from "../binary/decode.ts";
import { STRING_ENCODINGS, type StringEncoding } from "../model/canon.ts";
import type { Component } from "../model/definitions.ts";
import type { ComponentType } from "../model/types.ts";
import { componentToBinary } from "../text/parse_component.ts";
import { validateComponent } from "../validate/validate_component.ts";
import type { WitWorld } from "../wit/document.ts";
import { isWorldSection, worldsTogether } from "../wit/from_component.ts";
import { worldTypeText } from "./type_text.ts";

/** A core module, and the worlds that it contains. */
export interface WorldlyModule {
  readonly module: Module;
  readonly worlds: readonly ComponentType[];
  readonly encoding: StringEncoding;
}

/** The custom section of an embedded world in which tools record its string encoding: a version, and its code. */
const ENCODING_SECTION = "wit-component-encoding";

/** Decodes a core module and the worlds in it; `wit` is a further one. */
export function moduleWithWorlds(bytes: Uint8Array, wit?: WitWorld): WorldlyModule {
  const module = decodeModule(bytes);
  const sections = module.customs.filter(({ name }) => isWorldSection(name)).map((custom) =>
    decodeComponent(custom.bytes)
  );
  if (wit !== undefined) sections.push(decodeComponent(componentToBinary(worldTypeText(wit))));
  const encodings = sections.flatMap(encodingOf);
  const [encoding = "utf8"] = encodings;
  if (encodings.some((other) => other !== encoding)) {
    throw new InvalidError("the worlds in the module have different string encodings");
  }
  return { module, worlds: sections.map((section) => validateComponent(section).type), encoding };
}

function encodingOf({ customs }: Component): StringEncoding[] {
  const section = customs.find(({ name }) => name === ENCODING_SECTION);
  if (section === undefined) return [];
  const encoding = STRING_ENCODINGS[section.bytes[1]];
  if (encoding === undefined) throw new InvalidError("an embedded world has an unknown string encoding");
  return [encoding];
}

/** Unites the worlds of `modules`, of which at least one has a world; an interface that several have is one. */
export function uniteWorlds(modules: readonly WorldlyModule[]): WitWorld {
  return union(worldsTogether(modules.flatMap((module) => module.worlds)));
}

/** The union of `worlds`, under the name of the first. */
function union(worlds: readonly WitWorld[]): WitWorld {
  const united: WitWorld = { ...worlds[0], imports: new Map(), exports: new Map() };
  for (const world of worlds) {
    for (const side of ["imports", "exports"] as const) {
      for (const [key, item] of world[side]) {
        const present = united[side].get(key);
        if (present !== undefined && present.kind !== item.kind) {
          throw new InvalidError(`two worlds have different ${side} \`${key}\``);
        }
        if (present === undefined) united[side].set(key, item);
      }
    }
  }
  return united;
}
