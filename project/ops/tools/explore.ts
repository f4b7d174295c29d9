/**
 * `waft explore`: the stages of compilation of a module's functions as one page. In: the path of a module or component,
 * and which functions to show. Out: the page. Invariant: nothing runs, and no file but the module, its source map and
 * files below `sources` is read, whatever names the module contains.
 */
import { basename } from "node:path";
import { NewEngine } from "@waft/engine";
import { type ExploredStage, exploreModule, machineName, type ModuleExplorer } from "@waft/engine/internal/explore";
import { decodeComponent } from "@waft/component/internal/binary/decode";
import { UsageError } from "../../base/failure.ts";
import { explorePageHtml, packBody, type PagePlace, type PageStage } from "../../pages/explore_page.ts";
import { componentBytes } from "./component_bytes.ts";
import { fileKind } from "./file_kind.ts";
import { coreModules } from "./core_modules.ts";
import { ALL_FEATURES } from "../inspection/inspect_module.ts";
import { readInput } from "./read_input.ts";
import { readSource, readSourceMap } from "./source_files.ts";

/** Options of {@linkcode explorePage}. */
export interface ExploreRequest {
  /** Indices or parts of names of the functions to show; all functions if empty. */
  readonly functions: readonly string[];
  /** Number of the core module in a component. */
  readonly module?: number | undefined;
  /** The directory of the program's source files. */
  readonly sources?: string | undefined;
}

/** A page, and the number of functions in it. */
export interface ExploreResult {
  readonly html: string;
  readonly functions: number;
  readonly included: number;
}

/** Most characters of packed bodies in a page. */
const MAX_BODIES = 32 << 20;
/** Most characters of all sources in a page. */
const MAX_SOURCES = 32 << 20;

/** The page of the module at `path`. Throws the engine's errors, a UsageError, and those of the file system. */
export async function explorePage(path: string, request: ExploreRequest): Promise<ExploreResult> {
  const bytes = await coreModule(readInput(path), request.module);
  const engine = NewEngine({ features: ALL_FEATURES });
  engine.validate(bytes);
  const explorer = await exploreModule(engine.parse(bytes), {
    features: ALL_FEATURES,
    sourceMap: (url) => readSourceMap(path, url),
  });
  return new PageBuilder(explorer, path, request).build();
}

/** The core module of a file's content. */
async function coreModule(
  content: Uint8Array<ArrayBuffer>,
  wanted: number | undefined,
): Promise<Uint8Array<ArrayBuffer>> {
  const kind = fileKind(content);
  if (kind === "artifact") {
    throw new UsageError("An artifact has machine code alone; explore the module from which it was compiled");
  }
  const binary = await componentBytes(content, kind);
  if (binary === undefined) {
    if (wanted !== undefined) throw new UsageError("--module is for components; the file is a core module");
    return content;
  }
  const modules = coreModules(decodeComponent(binary));
  if (modules.length === 0) throw new UsageError("The component has no core modules");
  if (wanted === undefined && modules.length > 1) {
    throw new UsageError(
      `The component has ${modules.length} core modules; choose one with --module 0 to ${modules.length - 1}`,
    );
  }
  const chosen = modules[wanted ?? 0];
  if (chosen === undefined) {
    throw new UsageError(`The component has no core module ${wanted}; the last is ${modules.length - 1}`);
  }
  return new Uint8Array(chosen);
}

/** Collects the parts of a page. */
class PageBuilder {
  readonly #explorer: ModuleExplorer;
  readonly #path: string;
  readonly #request: ExploreRequest;
  readonly #files = new Map<string, number>();

  constructor(explorer: ModuleExplorer, path: string, request: ExploreRequest) {
    this.#explorer = explorer;
    this.#path = path;
    this.#request = request;
  }

  build(): ExploreResult {
    const explorer = this.#explorer;
    const functions = explorer.functions.map(({ index, bytes }) => ({ index, label: explorer.label(index), bytes }));
    const chosen = this.#chosen();
    const bodies = new Map<number, string>();
    let size = 0;
    for (const k of chosen) {
      const body = packBody(explorer.explore(k).map((stage) => this.#stage(stage)), (pos) => this.#place(pos));
      size += body.length;
      if (size > MAX_BODIES && bodies.size > 0) break;
      bodies.set(functions[k].index, body);
    }
    const first = chosen.length === 0 ? undefined : functions[chosen[0]].index;
    const title = this.#path === "-" ? "standard input" : basename(this.#path);
    const html = explorePageHtml({
      title,
      machine: machineName(),
      functions,
      first,
      bodies,
      files: [...this.#files.keys()],
      sources: this.#sources(),
      command: `waft explore --function INDEX ${title}`,
    });
    return { html, functions: functions.length, included: bodies.size };
  }

  /** The defined functions to show, in the order in which they enter the page. */
  #chosen(): number[] {
    const explorer = this.#explorer;
    const order = [...explorer.callOrder()];
    const { functions: wanted } = this.#request;
    if (wanted.length === 0) return order;
    return wanted.flatMap((word) => {
      const found = order.filter((k) => {
        const { index, name, symbol } = explorer.functions[k];
        return /^\d+$/.test(word) ? index === Number(word) : [name, symbol].some((each) => each?.includes(word));
      });
      if (found.length === 0) {
        throw new UsageError(`--function ${JSON.stringify(word)}: the module defines no such function`);
      }
      return found;
    });
  }

  #stage({ group, name, lines }: ExploredStage): PageStage {
    return {
      group,
      name,
      lines: lines.map(({ text, pos, inlined }) => {
        if (inlined === undefined) return { text, pos };
        const place = this.#explorer.placeOf(inlined.pos);
        const where = place === undefined ? "" : ` ${place.file}:${place.line}`;
        return { text, pos, note: `inlined from ${inlined.name}${where}` };
      }),
    };
  }

  #place(pos: number): PagePlace | undefined {
    const place = this.#explorer.placeOf(pos);
    if (place?.file === undefined || place.line === undefined) return undefined;
    const known = this.#files.get(place.file) ?? this.#files.size;
    this.#files.set(place.file, known);
    return [known, place.line];
  }

  #sources(): Map<number, string> {
    const { sources: directory } = this.#request;
    const texts = new Map<number, string>();
    let left = MAX_SOURCES;
    for (const [name, number] of this.#files) {
      const text = this.#explorer.sourceText(name) ??
        (directory === undefined ? undefined : readSource(directory, name));
      left -= text?.length ?? 0;
      // Many names of a module may lead to one file.
      if (left < 0) break;
      if (text !== undefined) texts.set(number, text);
    }
    return texts;
  }
}
