/** Reads pages of `waft explore` as their script does. Tests only. */
import { inflateRawSync } from "node:zlib";
import { Buffer } from "node:buffer";

/** The list of a page: index, label, bytes, and whether the body is in the page. */
interface PageIndex {
  readonly functions: readonly (readonly [number, string, number, number])[];
  readonly files: readonly string[];
  readonly absent: string;
}

/** A function's body in a page. */
export interface PageBody {
  readonly texts: readonly string[];
  readonly stages: readonly { group: string; name: string; lines: number[]; positions: number[]; notes: number[] }[];
  readonly places: Readonly<Record<string, readonly [number, number]>>;
}

function block(html: string, id: string): string {
  const found = new RegExp(`<script type="application/json" id="${id}">([^<]*)</script>`).exec(html)?.[1];
  if (found === undefined) throw new Error(`no block ${id}`);
  return found;
}

/** The list of functions. */
export function pageIndex(html: string): PageIndex {
  return JSON.parse(block(html, "index"));
}

/** A packed block. */
export function packedBlock<T>(html: string, id: string): T {
  return JSON.parse(inflateRawSync(Buffer.from(block(html, id), "base64")).toString());
}

/** The lines of a stage of a function. */
export function stageLines(html: string, index: number, name: string): string[] {
  const body = packedBlock<PageBody>(html, `f${index}`);
  const stage = body.stages.find((each) => each.name === name);
  if (stage === undefined) throw new Error(`no stage ${name}`);
  let line = 0;
  return stage.lines.map((difference) => body.texts[line += difference] ?? "");
}
