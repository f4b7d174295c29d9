/**
 * Text → Module (specification, chapter 6): one module, `(module …)` in any of its forms or its bare fields.
 *
 * Two passes over the tokens: scan_fields.ts binds names, parse_fields.ts does the rest. The result is encoded and
 * decoded once, so that every offset refers to `module.bytes`, as for a module in binary form; identifiers are in the
 * name section. Throws MalformedError, with line and column, for text that is not a module.
 */
import { decodeModule } from "../binary/decode.ts";
import { encodeModule } from "../binary/encode.ts";
import type { Module } from "../wasm/module.ts";
import { addBranchHints } from "./custom_annotations.ts";
import { K } from "./keywords.ts";
import { readTokens } from "./lexer.ts";
import { ModuleContext } from "./module_context.ts";
import { CodeParser } from "./parse_code.ts";
import { FieldParser } from "./parse_fields.ts";
import { parseRecField, parseTypeField } from "./parse_types.ts";
import { readingText } from "./not_text.ts";
import { scanFields } from "./scan_fields.ts";
import type { TextPlaces } from "./text_places.ts";
import { TokenCursor } from "./token_cursor.ts";
import { END } from "./tokens.ts";

interface ParseOptions {
  /** Receives the places in the text of the module's parts. */
  places?: TextPlaces;
}

/** Parses a module in text form; a `Uint8Array` is the text's UTF-8. */
export function parseModule(text: string | Uint8Array, { places }: ParseOptions = {}): Module {
  return readingText(text, () => parseTokens(text, places));
}

function parseTokens(text: string | Uint8Array, places: TextPlaces | undefined): Module {
  const cursor = new TokenCursor(readTokens(text));
  // A module in quotes or in binary has no places in this text.
  const recorded = isPlainText(cursor) ? places : undefined;
  const module = decodeModule(moduleAt(cursor, recorded));
  recorded?.finish(module, cursor.tokens);
  return module;
}

/** The binary form of a module in text form. `(module binary …)` returns its bytes unchecked. */
export function textToBinary(text: string | Uint8Array): Uint8Array {
  return moduleAt(new TokenCursor(readTokens(text)), undefined);
}

/** Parses one module, which must extend to the end of the tokens. */
function moduleAt(cursor: TokenCursor, places: TextPlaces | undefined): Uint8Array {
  const bytes = cursor.isOpen(K.module)
    ? parenthesizedModule(cursor, places)
    : encodeModule(parseFields(new ModuleContext(cursor, places)));
  if (cursor.kind !== END) cursor.unexpected();
  return bytes;
}

function isPlainText(cursor: TokenCursor): boolean {
  if (!cursor.isOpen(K.module)) return true;
  const ahead = new TokenCursor(cursor.tokens, cursor.at + 2);
  ahead.takeId();
  return !ahead.isKeyword(K.binary) && !ahead.isKeyword(K.quote);
}

/** Parses a standalone `(module …)`; returns its binary form. */
function parenthesizedModule(cursor: TokenCursor, places: TextPlaces | undefined): Uint8Array {
  cursor.expectOpen(K.module);
  return moduleContent(cursor, cursor.takeId(), places);
}

/** Parses the rest of `(module $id?`, including its parenthesis; returns the binary form. */
export function moduleContent(cursor: TokenCursor, id: number, places?: TextPlaces): Uint8Array {
  let bytes: Uint8Array;
  if (cursor.takeKeyword(K.binary)) {
    bytes = cursor.strings();
  } else if (cursor.takeKeyword(K.quote)) {
    bytes = textToBinary(cursor.strings());
  } else {
    const context = new ModuleContext(cursor, places);
    const annotation = cursor.takeNameAnnotation();
    if (annotation !== undefined && cursor.isNameAnnotation()) cursor.fail("@name annotation: multiple module names");
    const name = annotation ?? context.textOf(id);
    if (name !== undefined) context.names.module = name;
    bytes = encodeModule(parseFields(context));
  }
  cursor.expectClose();
  return bytes;
}

/** Parses fields up to a token that begins none, as a whole module. */
export function bareModule(cursor: TokenCursor): Uint8Array {
  return encodeModule(parseFields(new ModuleContext(cursor)));
}

function parseFields(context: ModuleContext): Module {
  const { cursor, module } = context;
  const fields = scanFields(context);
  const end = cursor.at;
  for (const token of fields.types) {
    cursor.at = token;
    if (cursor.takeOpen(K.type)) {
      parseTypeField(context);
    } else {
      cursor.expectOpen(K.rec);
      parseRecField(context);
    }
  }
  const parser = new FieldParser(context, new CodeParser(context));
  for (const token of fields.others) parser.field(token);
  cursor.at = end;
  if (context.usesData) module.dataCount = module.datas.length;
  addBranchHints(context);
  return module;
}
