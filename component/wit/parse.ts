/**
 * WIT text → syntax (WIT, "Top-level items" to "Handles"). In: a file. Out: its items with unresolved names.
 *
 * Errors are MalformedError with file, line and column. Nesting of types is bounded, so that no input exhausts the
 * stack.
 */
import { isLabel, isWords, versionFault } from "../model/names.ts";
import { isPrimitive } from "../model/types.ts";
import type {
  Annotations,
  ExternItem,
  FileSyntax,
  FuncItem,
  FuncKind,
  FuncSyntax,
  IncludeItem,
  InterfaceItem,
  InterfaceSyntax,
  Name,
  PackageName,
  PackageSyntax,
  TopLevelUse,
  TypeItem,
  TypeSyntax,
  UseItem,
  UsePath,
  WorldSyntax,
} from "./syntax.ts";
import { failAt, readTokens, type Token, type WitSource } from "./tokens.ts";

const MAX_NESTING = 100;

/** Parses a WIT file. */
export function parseWit(source: WitSource): FileSyntax {
  return new Parser(source).file();
}

class Parser {
  readonly #source: WitSource;
  readonly #tokens: readonly Token[];
  #at = 0;
  #nesting = 0;

  constructor(source: WitSource) {
    this.#source = source;
    this.#tokens = readTokens(source);
  }

  get #token(): Token {
    return this.#tokens[this.#at];
  }

  /** Fails at the current token. */
  #fail(message: string, at: number = this.#token.start): never {
    return failAt(this.#source, at, message);
  }

  #expected(what: string): never {
    const { kind, text } = this.#token;
    return this.#fail(`expected ${what}, found ${kind === "end" ? "the end of the file" : `\`${text}\``}`);
  }

  #take(kind: string): boolean {
    if (this.#token.kind !== kind) return false;
    this.#at++;
    return true;
  }

  #expect(kind: string): void {
    if (!this.#take(kind)) this.#expected(`\`${kind}\``);
  }

  #id(what = "a name"): Name {
    const { kind, text, start } = this.#token;
    if (kind !== "id") {
      const keyword = /^[a-z]/.test(kind) && kind !== "end" && kind !== "integer" && kind !== "string";
      return this.#expected(keyword ? `${what} (write the keyword as \`%${text}\`)` : what);
    }
    if (!isLabel(text)) this.#fail(`\`${text}\` is not in kebab case`);
    this.#at++;
    return { text, at: start };
  }

  /** Items up to the closing `end`, separated by commas; a trailing comma is allowed. */
  #list<T>(end: string, item: () => T): T[] {
    const items: T[] = [];
    while (!this.#take(end)) {
      items.push(item());
      if (!this.#take(",")) {
        this.#expect(end);
        break;
      }
    }
    return items;
  }

  file(): FileSyntax {
    const nested: PackageSyntax[] = [];
    let root: PackageSyntax = { docs: "", items: [] };
    const items: (InterfaceSyntax | WorldSyntax | TopLevelUse)[] = [];
    if (this.#token.kind === "package") {
      const { docs } = this.#token;
      const name = this.#packageName();
      if (this.#take(";")) root = { name, docs, items };
      else nested.push(this.#nestedPackage(name, docs));
    }
    while (this.#token.kind !== "end") {
      const { kind, docs } = this.#token;
      if (kind === "package") nested.push(this.#nestedPackage(this.#packageName(), docs));
      else items.push(this.#topLevelItem());
    }
    return { source: this.#source, root: { ...root, items }, nested };
  }

  #nestedPackage(name: PackageName, docs: string): PackageSyntax {
    this.#expect("{");
    const items: (InterfaceSyntax | WorldSyntax | TopLevelUse)[] = [];
    while (!this.#take("}")) items.push(this.#topLevelItem());
    return { name, docs, items };
  }

  #packageName(): PackageName {
    this.#expect("package");
    const namespace = this.#words();
    this.#expect(":");
    const name = this.#words();
    const version = this.#version();
    return version === undefined ? { namespace, name } : { namespace, name, version };
  }

  #words(): string {
    const { text, at } = this.#id("the name of a package");
    if (!isWords(text)) this.#fail(`\`${text}\` must be in lower case`, at);
    return text;
  }

  /** `@1.2.3`, if it follows. */
  #version(): string | undefined {
    if (!this.#take("@")) return undefined;
    return this.#bareVersion();
  }

  #bareVersion(): string {
    const { start } = this.#token;
    // A dot before a brace ends the version: `use a:b/c@1.0.0.{d}`.
    const [text] = /^[0-9A-Za-z.+-]*/.exec(this.#source.text.slice(start, start + 256)) ?? [""];
    const version = text.replace(/\.$/, "");
    const fault = versionFault(version);
    if (fault !== undefined) this.#fail(`\`${version}\` is not a version: ${fault}`, start);
    while (this.#token.start < start + version.length && this.#token.kind !== "end") this.#at++;
    return version;
  }

  #annotations(): Annotations {
    let { docs } = this.#token;
    const found: { since?: string; unstable?: string; deprecated?: string; externalId?: string } = {};
    while (this.#take("@")) {
      const name = this.#id("the name of an annotation");
      this.#expect("(");
      switch (name.text) {
        case "since":
        case "deprecated":
          this.#field("version");
          found[name.text] = this.#bareVersion();
          break;
        case "unstable":
          this.#field("feature");
          found.unstable = this.#id("the name of a feature").text;
          break;
        case "external-id":
          found.externalId = this.#string();
          break;
        default:
          this.#fail(`unknown annotation \`@${name.text}\``, name.at);
      }
      this.#expect(")");
      docs += this.#token.docs;
    }
    if (found.since !== undefined && found.unstable !== undefined) {
      this.#fail("an item cannot be both `@since` and `@unstable`");
    }
    if (found.deprecated !== undefined && found.since === undefined && found.unstable === undefined) {
      this.#fail("`@deprecated` must be paired with `@since` or `@unstable`");
    }
    return { docs, ...found };
  }

  #field(name: string): void {
    const { text } = this.#token;
    if (text !== name) this.#expected(`\`${name}\``);
    this.#at++;
    this.#expect("=");
  }

  #string(): string {
    const { kind, text } = this.#token;
    if (kind !== "string") this.#expected("a string");
    this.#at++;
    return text;
  }

  #topLevelItem(): InterfaceSyntax | WorldSyntax | TopLevelUse {
    const annotations = this.#annotations();
    if (this.#take("interface")) {
      const name = this.#id();
      this.#expect("{");
      return { ...annotations, kind: "interface", name, items: this.#interfaceItems() };
    }
    if (this.#take("world")) {
      const name = this.#id();
      this.#expect("{");
      return { ...annotations, kind: "world", name, items: this.#worldItems() };
    }
    if (!this.#take("use")) return this.#expected("`interface`, `world`, `use` or `package`");
    const path = this.#usePath();
    const as = this.#take("as") ? this.#id() : path.name;
    this.#expect(";");
    return { ...annotations, kind: "use", path, as };
  }

  #usePath(): UsePath {
    const name = this.#id();
    if (!this.#take(":")) return { name };
    return this.#pathFrom(name);
  }

  /** The path whose namespace and colon have been read. */
  #pathFrom(namespace: Name): UsePath {
    if (!isWords(namespace.text)) this.#fail(`\`${namespace.text}\` must be in lower case`, namespace.at);
    const packageName = this.#words();
    this.#expect("/");
    const name = this.#id();
    const version = this.#version();
    const base = { namespace: namespace.text, name: packageName };
    return { package: version === undefined ? base : { ...base, version }, name };
  }

  #interfaceItems(): InterfaceItem[] {
    const items: InterfaceItem[] = [];
    while (!this.#take("}")) {
      const annotations = this.#annotations();
      const { kind } = this.#token;
      if (kind === "use") items.push(this.#useItem(annotations));
      else items.push(this.#typeItem(annotations) ?? this.#funcItem(annotations));
    }
    return items;
  }

  #useItem(annotations: Annotations): UseItem {
    this.#expect("use");
    const path = this.#usePath();
    this.#expect(".");
    this.#expect("{");
    const names = this.#list("}", () => {
      const name = this.#id();
      return { name, as: this.#take("as") ? this.#id() : name };
    });
    if (names.length === 0) this.#fail("expected a name");
    this.#expect(";");
    return { ...annotations, kind: "use", path, names };
  }

  #funcItem(annotations: Annotations): FuncItem {
    const name = this.#id();
    this.#expect(":");
    const type = this.#funcType();
    this.#expect(";");
    return { ...annotations, kind: "func", name, funcKind: "free", type };
  }

  #funcType(): FuncSyntax {
    const async = this.#take("async");
    this.#expect("func");
    return this.#signature(async);
  }

  #signature(async: boolean): FuncSyntax {
    this.#expect("(");
    const params = this.#list(")", () => {
      const name = this.#id().text;
      this.#expect(":");
      return { name, type: this.#type() };
    });
    return this.#take("->") ? { async, params, result: this.#type() } : { async, params };
  }

  /** The definition of a type, if one begins here. */
  #typeItem(annotations: Annotations): TypeItem | undefined {
    const { kind } = this.#token;
    switch (kind) {
      case "type": {
        this.#at++;
        const name = this.#id();
        this.#expect("=");
        const type = this.#type();
        this.#expect(";");
        return { ...annotations, kind: "type", name, type: { kind: "alias", type } };
      }
      case "resource":
        return this.#resource(annotations);
      case "record":
      case "variant":
      case "flags":
      case "enum": {
        this.#at++;
        const name = this.#id();
        this.#expect("{");
        const labelDocs = new Map<string, string>();
        const type = this.#labelled(kind, labelDocs);
        return { ...annotations, kind: "type", name, type, ...(labelDocs.size === 0 ? {} : { labelDocs }) };
      }
    }
    return undefined;
  }

  #labelled(kind: "record" | "variant" | "flags" | "enum", labelDocs: Map<string, string>): TypeItem["type"] {
    const label = (): string => {
      const { docs } = this.#token;
      const { text } = this.#id();
      if (docs !== "") labelDocs.set(text, docs);
      return text;
    };
    switch (kind) {
      case "record":
        return {
          kind,
          fields: this.#list("}", () => {
            const name = label();
            this.#expect(":");
            return { name, type: this.#type() };
          }),
        };
      case "variant":
        return {
          kind,
          cases: this.#list("}", () => {
            const name = label();
            if (!this.#take("(")) return { name };
            const type = this.#type();
            this.#expect(")");
            return { name, type };
          }),
        };
      default:
        return { kind, names: this.#list("}", label) };
    }
  }

  #resource(annotations: Annotations): TypeItem {
    this.#expect("resource");
    const name = this.#id();
    const funcs: FuncItem[] = [];
    if (!this.#take(";")) {
      this.#expect("{");
      while (!this.#take("}")) funcs.push(this.#resourceFunc());
    }
    return { ...annotations, kind: "type", name, type: { kind: "resource", funcs } };
  }

  #resourceFunc(): FuncItem {
    const annotations = this.#annotations();
    const { start } = this.#token;
    let name: Name = { text: "constructor", at: start };
    let funcKind: FuncKind = "constructor";
    let type: FuncSyntax;
    if (this.#take("constructor")) type = this.#signature(false);
    else {
      name = this.#id();
      this.#expect(":");
      funcKind = this.#take("static") ? "static" : "method";
      type = this.#funcType();
    }
    this.#expect(";");
    return { ...annotations, kind: "func", name, funcKind, type };
  }

  #worldItems(): WorldSyntax["items"] {
    const items: (ExternItem | TypeItem | UseItem | IncludeItem)[] = [];
    while (!this.#take("}")) {
      const annotations = this.#annotations();
      const { kind } = this.#token;
      if (kind === "import" || kind === "export") items.push(this.#extern(kind, annotations));
      else if (kind === "use") items.push(this.#useItem(annotations));
      else if (kind === "include") items.push(this.#include(annotations));
      else {
        items.push(
          this.#typeItem(annotations) ??
            this.#expected("`import`, `export`, `include`, `use` or the definition of a type"),
        );
      }
    }
    return items;
  }

  #extern(kind: "import" | "export", annotations: Annotations): ExternItem {
    this.#at++;
    const name = this.#id();
    const colon = this.#token.start;
    if (!this.#take(":")) {
      this.#expect(";");
      return { ...annotations, kind, type: { kind: "path", path: { name } } };
    }
    switch (this.#token.kind) {
      case "async":
      case "func": {
        const type = this.#funcType();
        this.#expect(";");
        return { ...annotations, kind, name, type: { kind: "func", type } };
      }
      case "interface":
        this.#at++;
        this.#expect("{");
        return { ...annotations, kind, name, type: { kind: "inline", items: this.#interfaceItems() } };
    }
    // `a:b/c` without spaces is a path; `a: b` gives the interface `b` a plain name.
    if (this.#token.start === colon + 1 && colon === name.at + name.text.length) {
      const path = this.#pathFrom(name);
      this.#expect(";");
      return { ...annotations, kind, type: { kind: "path", path } };
    }
    const path = this.#usePath();
    this.#expect(";");
    return { ...annotations, kind, name, type: { kind: "path", path } };
  }

  #include(annotations: Annotations): IncludeItem {
    this.#expect("include");
    const path = this.#usePath();
    if (this.#take(";")) return { ...annotations, kind: "include", path, names: [] };
    this.#expect("with");
    this.#expect("{");
    const names = this.#list("}", () => {
      const name = this.#id();
      this.#expect("as");
      return { name, as: this.#id() };
    });
    this.#take(";");
    return { ...annotations, kind: "include", path, names };
  }

  #type(): TypeSyntax {
    if (++this.#nesting > MAX_NESTING) {
      this.#fail(`types are nested too deeply: at most ${MAX_NESTING} levels are possible`);
    }
    const type = this.#typeWithin();
    this.#nesting--;
    return type;
  }

  /** `<` type `>`. */
  #operand(): TypeSyntax {
    this.#expect("<");
    const type = this.#type();
    this.#expect(">");
    return type;
  }

  #typeWithin(): TypeSyntax {
    const { kind } = this.#token;
    if (kind === "id") return { kind: "named", name: this.#id() };
    if (isPrimitive(kind)) {
      this.#at++;
      return { kind };
    }
    this.#at++;
    switch (kind) {
      case "tuple":
        this.#expect("<");
        return { kind, types: this.#list(">", () => this.#type()) };
      case "list":
        return this.#listType();
      case "option":
        return { kind, type: this.#operand() };
      case "result":
        return this.#result();
      case "map": {
        this.#expect("<");
        const key = this.#type();
        this.#expect(",");
        const value = this.#type();
        this.#expect(">");
        return { kind, key, value };
      }
      case "stream":
      case "future":
        return this.#token.kind === "<" ? { kind, element: this.#operand() } : { kind };
      case "own":
      case "borrow": {
        this.#expect("<");
        const resource = this.#id("the name of a resource");
        this.#expect(">");
        return { kind, resource };
      }
    }
    this.#at--;
    return this.#expected("a type");
  }

  #listType(): TypeSyntax {
    this.#expect("<");
    const element = this.#type();
    if (!this.#take(",")) {
      this.#expect(">");
      return { kind: "list", element };
    }
    const { kind, text } = this.#token;
    if (kind !== "integer" || !/^[1-9][0-9]*$/.test(text) || Number(text) > 0xffff_ffff) this.#expected("a length");
    this.#at++;
    this.#expect(">");
    return { kind: "list", element, length: Number(text) };
  }

  #result(): TypeSyntax {
    if (!this.#take("<")) return { kind: "result" };
    const ok = this.#take("_") ? undefined : this.#type();
    const err = this.#take(",") ? this.#type() : undefined;
    this.#expect(">");
    return { kind: "result", ...(ok === undefined ? {} : { ok }), ...(err === undefined ? {} : { err }) };
  }
}
