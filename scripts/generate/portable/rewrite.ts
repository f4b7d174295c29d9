/**
 * Rewrites a file of the compiler to AssemblyScript. In: a source file with the program's types, and the values of its
 * constants. Out: the text for AssemblyScript, line by line at the same place, so that its diagnostics name lines of
 * the source; and the constructs outside of the subset, each with its line and a construct to use instead.
 *
 * The subset: functions, classes with private and destructured fields, typed arrays, arrays, Maps and Sets of numbers,
 * `for…of` over them, constants and tables that are computed when a module loads, interfaces of data. A `number` is a
 * 32-bit integer unless its type says otherwise (base/numbers.ts). Not in the subset: functions that capture variables,
 * unions other than with `undefined`, tuples, exceptions that are caught, generators, text.
 */
import ts from "typescript";
import { constantText } from "./constant_text.ts";

/** A construct outside of the subset. */
export interface Problem {
  readonly file: string;
  readonly line: number;
  /** The construct, and the remedy. */
  readonly what: string;
}

/** The surroundings of a file. */
interface RewriteContext {
  readonly checker: ts.TypeChecker;
  /** The name of the file in problems. */
  readonly file: string;
  /** The values of the file's constants and of the constants that it imports, by name. */
  readonly values: ReadonlyMap<string, unknown>;
  /** Names of declarations that AssemblyScript does not get: of this file, and of the one with a specifier. */
  readonly hostOnly: ReadonlySet<string>;
  readonly hostOnlyOf: (from: string) => ReadonlySet<string>;
  /** Whether the module with the specifier `from`, as this file writes it, is in the subset. */
  readonly isPortable: (from: string) => boolean;
  /**
   * The name of function `value` and the specifier of its file, undefined for this file; undefined if the function is
   * not at the top level of a file.
   */
  readonly functionOf: (value: unknown) => { readonly name: string; readonly from: string | undefined } | undefined;
  /** The class that implements interface `name` of this file, and the specifier of its file; undefined for none. */
  readonly implementor: (name: string) => { readonly name: string; readonly from: string } | undefined;
}

interface Rewritten {
  readonly text: string;
  readonly problems: readonly Problem[];
}

/** Typed arrays whose elements AssemblyScript would compute with in fewer than 32 bits, with the element's type. */
const SMALL_ELEMENTS: ReadonlyMap<string, string> = new Map([
  ["Uint8Array", "u8"],
  ["Int8Array", "i8"],
  ["Uint16Array", "u16"],
  ["Int16Array", "i16"],
]);

/** Types of base/numbers.ts that AssemblyScript has itself. */
const NUMBER_TYPES = new Set(["f64"]);

/** Constructs that have no counterpart, with the remedy. */
const REFUSED: ReadonlyMap<ts.SyntaxKind, string> = new Map([
  [ts.SyntaxKind.SpreadElement, "a spread: use a loop, or `set` for typed arrays"],
  [ts.SyntaxKind.SpreadAssignment, "a spread: name the fields"],
  [ts.SyntaxKind.TemplateExpression, "text made of values: describe failures outside of the compiler"],
  [ts.SyntaxKind.TryStatement, "a caught exception: return a status"],
  [ts.SyntaxKind.YieldExpression, "a generator: use a loop, or a column"],
  [ts.SyntaxKind.AwaitExpression, "a promise: the compiler is synchronous"],
  [ts.SyntaxKind.ForInStatement, "a loop over names: use an array"],
  [ts.SyntaxKind.TupleType, "a tuple: declare an interface"],
  [ts.SyntaxKind.TypeLiteral, "a type without a name: declare an interface"],
  [ts.SyntaxKind.IndexedAccessType, "a computed type: name it"],
  [ts.SyntaxKind.MappedType, "a computed type: name it"],
  [ts.SyntaxKind.TypeQuery, "a computed type: name it"],
  [ts.SyntaxKind.ArrayBindingPattern, "an array taken apart: declare an interface, or read the elements"],
  [ts.SyntaxKind.RegularExpressionLiteral, "a regular expression: compute with numbers"],
  [ts.SyntaxKind.BigIntLiteral, "a BigInt: compute with halves"],
  [ts.SyntaxKind.TypeOfExpression, "`typeof`: give each type its own function"],
  [ts.SyntaxKind.DeleteExpression, "`delete`: use a Map"],
]);

/** A quotient with a fraction; AssemblyScript refuses one of integers, which it would round. */
const DIVIDE = `
@inline function $divide<A, B>(a: A, b: B): f64 {
  if (isInteger<A>() && isInteger<B>()) ERROR("a quotient of integers: truncate it by \`| 0\`, or compute with f64");
  return <f64>a / <f64>b;
}
`;

/** Rewrites `source`. */
export function rewriteFile(source: ts.SourceFile, context: RewriteContext): Rewritten {
  const rewriter = new Rewriter(source, context);
  const text = rewriter.render(source);
  return { text: rewriter.divides ? text + DIVIDE : text, problems: rewriter.problems };
}

/** Whether evaluating `e` twice is the same as evaluating it once. */
function isRepeatable(e: ts.Expression): boolean {
  if (ts.isIdentifier(e) || ts.isNumericLiteral(e) || e.kind === ts.SyntaxKind.ThisKeyword) return true;
  if (ts.isPropertyAccessExpression(e) || ts.isNonNullExpression(e) || ts.isParenthesizedExpression(e)) {
    return isRepeatable(e.expression);
  }
  if (ts.isElementAccessExpression(e)) return isRepeatable(e.expression) && isRepeatable(e.argumentExpression);
  if (!ts.isBinaryExpression(e) || isAssignment(e.operatorToken.kind)) return false;
  return isRepeatable(e.left) && isRepeatable(e.right);
}

function isAssignment(kind: ts.SyntaxKind): boolean {
  return kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment;
}

function isTopLevel(node: ts.Node): boolean {
  return ts.isSourceFile(node.parent);
}

function isExported(node: ts.Statement): boolean {
  return ts.canHaveModifiers(node) &&
    ts.getModifiers(node)?.some((modifier) => modifier.kind === ts.SyntaxKind.ExportKeyword) === true;
}

/** Whether a constant with `value` has no text, so that only TypeScript uses it. */
function isHostValue(value: unknown): boolean {
  if (value === undefined || typeof value === "function") return false;
  if (Array.isArray(value) && typeof value[0] === "function") return false;
  return constantText("X", value, false) === undefined;
}

function withoutExtension(from: string): string {
  return from.replace(/\.ts$/, "");
}

class Rewriter {
  readonly problems: Problem[] = [];
  /** Whether the text uses {@linkcode DIVIDE}. */
  divides = false;
  readonly #source: ts.SourceFile;
  readonly #context: RewriteContext;
  /** Number of names made. */
  #made = 0;

  constructor(source: ts.SourceFile, context: RewriteContext) {
    this.#source = source;
    this.#context = context;
  }

  /** The text for `node`, with as many lines. */
  render(node: ts.Node): string {
    const refused = REFUSED.get(node.kind);
    if (refused !== undefined) return this.#refuse(node, refused);
    const text = this.#replacement(node);
    if (text === undefined) return this.#copy(node);
    const missing = this.#lines(node.getText(this.#source)) - this.#lines(text);
    return text + "\n".repeat(Math.max(0, missing));
  }

  #lines(text: string): number {
    return text.split("\n").length;
  }

  /** The text of `node` with its children rendered. */
  #copy(node: ts.Node): string {
    let text = "";
    let at = ts.isSourceFile(node) ? 0 : node.getStart(this.#source);
    ts.forEachChild(node, (child) => {
      if (child.kind === ts.SyntaxKind.EndOfFileToken) return;
      const start = child.getStart(this.#source);
      text += this.#source.text.slice(at, start) + this.render(child);
      at = child.end;
    });
    return text + this.#source.text.slice(at, node.end);
  }

  /** Notes a construct outside of the subset. */
  #refuse(node: ts.Node, what: string): string {
    const { line } = this.#source.getLineAndCharacterOfPosition(node.getStart(this.#source));
    this.problems.push({ file: this.#context.file, line: line + 1, what });
    return node.getText(this.#source);
  }

  #name(prefix: string): string {
    return `$${prefix}${this.#made++}`;
  }

  /** The text for a node that is not copied. */
  #replacement(node: ts.Node): string | undefined {
    if (ts.isPrivateIdentifier(node)) return `_${node.text.slice(1)}`;
    if (ts.isStatement(node)) return this.#statement(node);
    if (ts.isTypeNode(node)) return this.#type(node);
    if (ts.isExpression(node)) return this.#expression(node);
    if (ts.isParameter(node)) return this.#parameter(node);
    if (ts.isPropertyDeclaration(node)) return this.#field(node);
    if (ts.isHeritageClause(node) && node.token === ts.SyntaxKind.ImplementsKeyword) return "";
    if (ts.isVariableDeclarationList(node)) return this.#declarations(node);
    return undefined;
  }

  // ---- statements ---------------------------------------------------------------------------------------------------

  #statement(node: ts.Statement): string | undefined {
    if (isTopLevel(node)) return this.#topLevel(node);
    if (ts.isForOfStatement(node)) return this.#forOf(node);
    if (ts.isExpressionStatement(node)) return this.#exchange(node.expression);
    // Nothing catches an exception: it is a fault of the compiler, which ends.
    if (ts.isThrowStatement(node)) return this.#throw(node);
    if (ts.isReturnStatement(node) && node.expression !== undefined && this.#isVoid(node.expression)) {
      return `{ ${this.render(node.expression)}; return; }`;
    }
    return undefined;
  }

  /** `[a, b] = [c, d]`: all values are computed before the first is assigned. */
  #exchange(node: ts.Expression): string | undefined {
    if (!ts.isBinaryExpression(node) || node.operatorToken.kind !== ts.SyntaxKind.EqualsToken) return undefined;
    const { left, right } = node;
    if (!ts.isArrayLiteralExpression(left) || !ts.isArrayLiteralExpression(right)) return undefined;
    const names = right.elements.map(() => this.#name("value"));
    const values = right.elements.map((value, k) => `${names[k]} = ${this.render(value)}`);
    const targets = left.elements.map((target, k) => `${this.render(target)} = ${names[k]};`);
    return `{ const ${values.join(", ")}; ${targets.join(" ")} }`;
  }

  /** The end of the compiler; a function that makes the error notes the failure instead. */
  #throw({ expression }: ts.ThrowStatement): string {
    const end = `throw new Error("");`;
    return ts.isCallExpression(expression) ? `{ ${this.render(expression)}; ${end} }` : end;
  }

  #isVoid(node: ts.Expression): boolean {
    return (this.#context.checker.getTypeAtLocation(node).flags & ts.TypeFlags.Void) !== 0;
  }

  #topLevel(node: ts.Statement): string | undefined {
    const { hostOnly } = this.#context;
    if (ts.isImportDeclaration(node)) return this.#import(node);
    if (ts.isVariableStatement(node)) {
      return (node.declarationList.flags & ts.NodeFlags.Const) !== 0 ? this.#constants(node) : undefined;
    }
    if (ts.isInterfaceDeclaration(node)) return hostOnly.has(node.name.text) ? "" : this.#interface(node);
    if (ts.isFunctionDeclaration(node) || ts.isClassDeclaration(node) || ts.isTypeAliasDeclaration(node)) {
      return node.name !== undefined && hostOnly.has(node.name.text) ? "" : undefined;
    }
    if (ts.isExportDeclaration(node)) return this.#export(node);
    // It fills tables, whose contents are constants here.
    if (ts.isForOfStatement(node) || ts.isExpressionStatement(node)) return "";
    return this.#refuse(node, "a statement at the top level: use a declaration");
  }

  #import(node: ts.ImportDeclaration): string {
    const { isPortable, values } = this.#context;
    const from = (node.moduleSpecifier as ts.StringLiteral).text;
    const named = node.importClause?.namedBindings;
    if (named !== undefined && ts.isNamespaceImport(named) && isPortable(from)) {
      return `import * as ${named.name.text} from "${withoutExtension(from)}";`;
    }
    if (named === undefined || !ts.isNamedImports(named)) {
      return this.#refuse(node, "an import without names: name them");
    }
    const hostOnly = this.#context.hostOnlyOf(from);
    const elements = named.elements.filter(({ name, propertyName }) =>
      !NUMBER_TYPES.has(name.text) && !hostOnly.has((propertyName ?? name).text) &&
      !isHostValue(values.get(name.text))
    );
    if (isPortable(from)) {
      if (elements.length === 0) return "";
      const names = elements.map(({ name, propertyName }) =>
        propertyName === undefined ? name.text : `${propertyName.text} as ${name.text}`
      );
      return `import { ${names.join(", ")} } from "${withoutExtension(from)}";`;
    }
    // Constants of other rooms are copied; AssemblyScript reports the use of anything else.
    return elements.map(({ name }) => constantText(name.text, values.get(name.text), false) ?? "").join(" ");
  }

  /** Names of another file that this one exports. */
  #export(node: ts.ExportDeclaration): string {
    const { moduleSpecifier, exportClause } = node;
    if (moduleSpecifier === undefined || exportClause === undefined || !ts.isNamedExports(exportClause)) {
      return this.#refuse(node, "an export of all names: name them");
    }
    const names = exportClause.elements.map(({ name }) => name.text);
    return `export { ${names.join(", ")} } from "${withoutExtension((moduleSpecifier as ts.StringLiteral).text)}";`;
  }

  #constants(node: ts.VariableStatement): string {
    const texts = node.declarationList.declarations.flatMap((declaration) => {
      const table = this.#functionTable(declaration);
      if (table !== undefined) return isExported(node) ? table.replace("const", "export const") : table;
      const type = declaration.type?.getText(this.#source);
      return boundNames(declaration.name).map((name) =>
        constantText(name, this.#context.values.get(name), isExported(node), type === "f64")
      );
    });
    return texts.filter((text) => text !== undefined).join(" ");
  }

  /** The declaration of a table of functions; undefined for other constants. */
  #functionTable({ name, type }: ts.VariableDeclaration): string | undefined {
    const value = ts.isIdentifier(name) ? this.#context.values.get(name.text) : undefined;
    if (!Array.isArray(value) || value.length === 0 || typeof value[0] !== "function") return undefined;
    if (type === undefined) return this.#refuse(name, "a table of functions without a type: write the type");
    const imports = new Set<string>();
    const entries = value.map((entry) => {
      const found = this.#context.functionOf(entry);
      if (found === undefined) return this.#refuse(name, "a function without a name in a table: declare it");
      if (found.from === undefined) return found.name;
      imports.add(`import { ${found.name} as $${found.name} } from "${withoutExtension(found.from)}";`);
      return `$${found.name}`;
    });
    // A function that takes a base class is not of the type of one that takes its subclass.
    const list = this.render(type), element = list.slice(0, -2);
    const items = entries.map((entry) => `changetype<${element}>(${entry})`);
    return `const ${name.getText(this.#source)}: ${list} = [${items.join(", ")}]; ${[...imports].join(" ")}`;
  }

  /** A class with the fields of an interface, or another name of the class that implements it. */
  #interface(node: ts.InterfaceDeclaration): string {
    const implementor = this.#context.implementor(node.name.text);
    if (implementor !== undefined) {
      const { name: { text: name } } = node;
      const from = withoutExtension(implementor.from);
      return `import { ${implementor.name} as ${name} } from "${from}"; export { ${name} };`;
    }
    const fields = node.members.map((member) => {
      if (!ts.isPropertySignature(member) || member.type === undefined) {
        return this.#refuse(member, "an interface with methods: give it one class that implements it");
      }
      const type = this.render(member.type);
      const initial = type === "i32" || type === "f64" ? "0" : type === "bool" ? "false" : `changetype<${type}>(0)`;
      return `${member.name.getText(this.#source)}: ${type} = ${initial};`;
    });
    return `${isExported(node) ? "export " : ""}class ${node.name.text} { ${fields.join(" ")} }`;
  }

  #forOf(node: ts.ForOfStatement): string {
    const index = this.#name("i"), list = this.#name("list");
    const type = this.#typeName(node.expression);
    let items = this.render(node.expression);
    if (type === "Set" || type === "ReadonlySet") items = `${items}.values()`;
    const initializer = node.initializer;
    if (!ts.isVariableDeclarationList(initializer)) return this.#refuse(node, "a loop without a declaration: declare");
    const { name } = initializer.declarations[0];
    const head = (extra: string) => `for (let ${index} = 0, ${list} = ${extra}; ${index} < ${list}.length; ${index}++)`;
    const body = this.render(node.statement);
    if (type === "Map" || type === "ReadonlyMap") {
      if (!ts.isArrayBindingPattern(name)) return this.#refuse(node, "a loop over a Map: take `[key, value]`");
      const values = this.#name("values");
      const [key, value] = boundNames(name);
      return `${head(`${items}.keys(), ${values} = ${items}.values()`)} { ` +
        `const ${key} = ${list}[${index}], ${value} = ${values}[${index}]; ${body} }`;
    }
    const element = SMALL_ELEMENTS.has(type) ? `<i32>${list}[${index}]` : `${list}[${index}]`;
    if (ts.isIdentifier(name)) return `${head(items)} { const ${name.text} = ${element}; ${body} }`;
    const taken = this.#name("item");
    return `${head(items)} { const ${taken} = ${element}; const ${this.#takeApart(name, taken)}; ${body} }`;
  }

  // ---- declarations -------------------------------------------------------------------------------------------------

  #declarations(node: ts.VariableDeclarationList): string | undefined {
    if (!node.declarations.some(({ name }) => !ts.isIdentifier(name))) return undefined;
    const keyword = (node.flags & ts.NodeFlags.Const) !== 0 ? "const" : "let";
    const parts = node.declarations.map((declaration) => {
      const { name, initializer } = declaration;
      if (ts.isIdentifier(name) || initializer === undefined) return this.render(declaration);
      const value = this.render(initializer);
      if (isRepeatable(initializer)) return this.#takeApart(name, value);
      const whole = this.#name("whole");
      return `${whole} = ${value}, ${this.#takeApart(name, whole)}`;
    });
    return `${keyword} ${parts.join(", ")}`;
  }

  /** The declarations of a destructured `value`. */
  #takeApart(pattern: ts.BindingPattern, value: string): string {
    if (ts.isArrayBindingPattern(pattern)) {
      return this.#refuse(pattern, REFUSED.get(ts.SyntaxKind.ArrayBindingPattern) ?? "");
    }
    return pattern.elements.map(({ name, propertyName, initializer }) => {
      if (initializer !== undefined) {
        return this.#refuse(pattern, "a default of a field: set it where the object is made");
      }
      const field = (propertyName ?? name).getText(this.#source);
      return ts.isIdentifier(name) ? `${name.text} = ${value}.${field}` : this.#takeApart(name, `${value}.${field}`);
    }).join(", ");
  }

  #parameter(node: ts.ParameterDeclaration): string | undefined {
    if (!ts.isIdentifier(node.name)) {
      return this.#refuse(node, "a destructured parameter: take the object apart inside");
    }
    if (node.questionToken !== undefined && node.type !== undefined) {
      return `${node.name.text}: ${this.render(node.type)} | null = null`;
    }
    if (node.initializer === undefined || node.type !== undefined) return undefined;
    return `${node.name.text}: ${this.#inferred(node, node.initializer)} = ${this.render(node.initializer)}`;
  }

  #field(node: ts.PropertyDeclaration): string | undefined {
    if (node.type !== undefined || node.initializer === undefined) return undefined;
    const readonly = node.modifiers?.some((modifier) => modifier.kind === ts.SyntaxKind.ReadonlyKeyword) === true;
    const type = this.#inferred(node, node.initializer);
    return `${readonly ? "readonly " : ""}${this.render(node.name)}: ${type} = ${this.render(node.initializer)};`;
  }

  /** The type of a declaration that leaves it to its initializer. */
  #inferred(node: ts.Node, initializer: ts.Expression): string {
    if (ts.isNewExpression(initializer)) {
      const { expression, typeArguments } = initializer;
      const types = typeArguments === undefined ? "" : `<${typeArguments.map((type) => this.render(type)).join(", ")}>`;
      return expression.getText(this.#source) + types;
    }
    const { flags } = this.#context.checker.getTypeAtLocation(node);
    if ((flags & (ts.TypeFlags.Number | ts.TypeFlags.NumberLiteral)) !== 0) return "i32";
    if ((flags & (ts.TypeFlags.Boolean | ts.TypeFlags.BooleanLiteral)) !== 0) return "bool";
    return this.#refuse(node, "a declaration without a type: write the type");
  }

  // ---- types --------------------------------------------------------------------------------------------------------

  #type(node: ts.TypeNode): string | undefined {
    if (node.kind === ts.SyntaxKind.NumberKeyword) return "i32";
    if (node.kind === ts.SyntaxKind.BooleanKeyword) return "bool";
    if (ts.isTypeReferenceNode(node)) return this.#namedType(node);
    if (ts.isTypeOperatorNode(node)) {
      if (node.operator === ts.SyntaxKind.ReadonlyKeyword) return this.render(node.type);
      return this.#refuse(node, "a computed type: name it");
    }
    return ts.isUnionTypeNode(node) ? this.#union(node) : undefined;
  }

  #namedType(node: ts.TypeReferenceNode): string | undefined {
    const name = node.typeName.getText(this.#source);
    const plain = name === "ReadonlyMap" ? "Map" : name === "ReadonlySet" ? "Set" : undefined;
    if (plain === undefined) {
      // Another name of `number`.
      const { flags } = this.#context.checker.getTypeFromTypeNode(node);
      return (flags & ts.TypeFlags.Number) !== 0 && !NUMBER_TYPES.has(name) ? "i32" : undefined;
    }
    return `${plain}<${node.typeArguments?.map((type) => this.render(type)).join(", ")}>`;
  }

  #union(node: ts.UnionTypeNode): string {
    const rest = node.types.filter((type) => type.kind !== ts.SyntaxKind.UndefinedKeyword);
    const isSimple = rest.length === 1 && node.types.length === 2;
    if (!isSimple || rest[0].kind === ts.SyntaxKind.NumberKeyword || rest[0].kind === ts.SyntaxKind.BooleanKeyword) {
      return this.#refuse(node, "a union: use one type, or a number that stands for none");
    }
    return `${this.render(rest[0])} | null`;
  }

  // ---- expressions --------------------------------------------------------------------------------------------------

  #expression(node: ts.Expression): string | undefined {
    if (ts.isBinaryExpression(node)) return this.#binary(node);
    if (ts.isElementAccessExpression(node)) return this.#element(node);
    if (ts.isCallExpression(node)) return this.#call(node);
    if (ts.isNumericLiteral(node)) return this.#literal(node);
    if (ts.isNonNullExpression(node)) return this.#isNeverNull(node) ? this.render(node.expression) : undefined;
    if (ts.isIdentifier(node)) return node.text === "undefined" ? "null" : undefined;
    if (ts.isArrowFunction(node) || ts.isFunctionExpression(node)) return this.#function(node);
    if (ts.isPostfixUnaryExpression(node) || ts.isPrefixUnaryExpression(node)) return this.#unary(node);
    if (ts.isPropertyAccessExpression(node) && node.questionDotToken !== undefined) {
      return this.#refuse(node, "optional chaining: compare with undefined");
    }
    return undefined;
  }

  #unary(node: ts.PostfixUnaryExpression | ts.PrefixUnaryExpression): string | undefined {
    const { operator, operand } = node;
    const counts = operator === ts.SyntaxKind.PlusPlusToken || operator === ts.SyntaxKind.MinusMinusToken;
    if (!counts || !ts.isElementAccessExpression(operand) || this.#smallElement(operand) === undefined) {
      return undefined;
    }
    return this.#refuse(node, "a count in an element of fewer than 32 bits: use an Int32Array");
  }

  /** The name of the type of `node`, without type arguments. */
  #typeName(node: ts.Expression): string {
    return this.#context.checker.getTypeAtLocation(node).getSymbol()?.name ?? "";
  }

  #smallElement(node: ts.Expression): string | undefined {
    return ts.isElementAccessExpression(node) ? SMALL_ELEMENTS.get(this.#typeName(node.expression)) : undefined;
  }

  #element(node: ts.ElementAccessExpression): string | undefined {
    if (this.#typeName(node.expression) === "Uint32Array") {
      return this.#refuse(node, "an element above 2^31: use an Int32Array, and `unsigned` of base/numbers.ts");
    }
    return this.#smallElement(node) === undefined ? undefined : `(<i32>${this.#copy(node)})`;
  }

  #binary(node: ts.BinaryExpression): string | undefined {
    const { left, right, operatorToken } = node;
    const operator = operatorToken.kind;
    if (isAssignment(operator)) return this.#assignment(node);
    switch (operator) {
      case ts.SyntaxKind.EqualsEqualsEqualsToken:
        return `${this.render(left)} == ${this.render(right)}`;
      case ts.SyntaxKind.ExclamationEqualsEqualsToken:
        return `${this.render(left)} != ${this.render(right)}`;
      case ts.SyntaxKind.QuestionQuestionToken:
        return this.#orElse(left, right);
      case ts.SyntaxKind.SlashToken:
        return isTruncated(node) ? undefined : this.#division(node);
      case ts.SyntaxKind.AsteriskAsteriskToken:
        return this.#refuse(node, "a power: shift, or multiply");
      case ts.SyntaxKind.GreaterThanGreaterThanGreaterThanToken:
        if (!ts.isNumericLiteral(right) || right.text !== "0") return undefined;
        return this.#refuse(node, "`>>> 0`: use `unsigned` or `isBelow` of base/numbers.ts");
      case ts.SyntaxKind.InKeyword:
      case ts.SyntaxKind.InstanceOfKeyword:
        return this.#refuse(node, "a test of a type: use a field");
    }
    return undefined;
  }

  #division({ left, right }: ts.BinaryExpression): string {
    this.divides = true;
    return `$divide(${this.render(left)}, ${this.render(right)})`;
  }

  #assignment(node: ts.BinaryExpression): string | undefined {
    const { left, right, operatorToken: { kind } } = node;
    switch (kind) {
      case ts.SyntaxKind.SlashEqualsToken:
        return this.#refuse(node, "`/=`: assign the quotient");
      case ts.SyntaxKind.QuestionQuestionEqualsToken:
      case ts.SyntaxKind.AmpersandAmpersandEqualsToken:
      case ts.SyntaxKind.BarBarEqualsToken:
        return this.#refuse(node, "an assignment that depends on the old value: use `if`");
    }
    const small = this.#smallElement(left);
    if (small === undefined) return undefined;
    if (!ts.isExpressionStatement(node.parent) && !isStep(node)) {
      return this.#refuse(node, "the value of an assignment to an element of fewer than 32 bits: assign twice");
    }
    const target = this.#copy(left), value = this.render(right);
    if (kind === ts.SyntaxKind.EqualsToken) return `${target} = <${small}>(${value})`;
    if (!isRepeatable(left)) return this.#refuse(node, "a computed element that is read and written: name its index");
    const operator = ts.tokenToString(kind)?.slice(0, -1);
    return `${target} = <${small}>(<i32>${target} ${operator} (${value}))`;
  }

  /** Whether `node` is a lookup in a Map, which in AssemblyScript never has the result undefined. */
  #isLookup(node: ts.Expression): node is ts.CallExpression {
    return ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression) &&
      node.expression.name.text === "get" && /^(Readonly)?Map$/.test(this.#typeName(node.expression.expression));
  }

  /** Whether AssemblyScript's type of the operand of `!` has no null: lookups in Maps, and numbers. */
  #isNeverNull(node: ts.NonNullExpression): boolean {
    const { flags } = this.#context.checker.getTypeAtLocation(node);
    return this.#isLookup(node.expression) || (flags & ts.TypeFlags.Number) !== 0;
  }

  #orElse(left: ts.Expression, right: ts.Expression): string {
    if (this.#isLookup(left) && ts.isPropertyAccessExpression(left.expression)) {
      const map = left.expression.expression, key = left.arguments[0];
      if (!isRepeatable(map) || !isRepeatable(key)) return this.#refuse(left, "a computed key: name it");
      const at = this.render(key);
      return `(${this.render(map)}.has(${at}) ? ${this.#copy(left)} : ${this.render(right)})`;
    }
    return this.#refuse(left, "`??` on anything but a lookup in a Map: compare with undefined");
  }

  #literal(node: ts.NumericLiteral): string | undefined {
    const value = Number(node.text);
    // Hexadecimal numbers are bit patterns.
    const isPattern = /^0x/i.test(node.getText(this.#source)) && value > 0x7fffffff && value <= 0xffffffff;
    return isPattern ? `(<i32>${node.getText(this.#source)})` : undefined;
  }

  #call(node: ts.CallExpression): string | undefined {
    const { expression } = node;
    const values = () => node.arguments.map((argument) => this.render(argument));
    if (node.questionDotToken !== undefined) {
      if (!ts.isIdentifier(expression) || !ts.isExpressionStatement(node.parent)) {
        return this.#refuse(node, "optional chaining: compare with undefined");
      }
      return `if (${expression.text} != null) ${expression.text}(${values().join(", ")})`;
    }
    const callee = expression.getText(this.#source);
    switch (callee) {
      case "Math.imul":
        return `(${values().map((value) => `(${value})`).join(" * ")})`;
      case "Math.clz32":
        return `<i32>clz<i32>(${values()[0]})`;
      case "Math.min":
      case "Math.max":
        return values().reduce((first, second) => `${callee.slice(5)}(${first}, ${second})`);
      case "Math.abs":
      case "Math.floor":
      case "Math.trunc":
      case "Math.sqrt":
      case "Math.ceil":
        return `${callee.slice(5)}(${values()[0]})`;
      case "Number":
        return `<i32>(${values()[0]})`;
      case "Number.isNaN":
        return `isNaN(${values()[0]})`;
    }
    if (/^(Math|Number|Object|Array|JSON|String)\./.test(callee)) {
      return this.#refuse(node, `${callee}: write it with the operations of the subset`);
    }
    return undefined;
  }

  #function(node: ts.ArrowFunction | ts.FunctionExpression): string | undefined {
    const captured = this.#captured(node);
    if (captured === undefined) return undefined;
    return this.#refuse(node, `a function that captures ${captured}: use a method, or pass it`);
  }

  /** The name of a variable that `inner` uses and that belongs to a function around it; undefined for none. */
  #captured(inner: ts.Node): string | undefined {
    const visit = (node: ts.Node): string | undefined => {
      if (node.kind === ts.SyntaxKind.ThisKeyword) return "this";
      if (ts.isIdentifier(node)) {
        const declared = this.#context.checker.getSymbolAtLocation(node)?.valueDeclaration;
        const isLocal = declared !== undefined && declared.getSourceFile() === this.#source &&
          (ts.isVariableDeclaration(declared) || ts.isParameter(declared) || ts.isBindingElement(declared)) &&
          !isInside(declared, inner) && ts.findAncestor(declared, ts.isFunctionLike) !== undefined;
        if (isLocal) return node.text;
      }
      return ts.forEachChild(node, visit);
    };
    return visit(inner);
  }
}

/** Whether the quotient `node` is truncated to 32 bits: `(a / b) | 0`. */
function isTruncated({ parent }: ts.Node): boolean {
  if (!ts.isParenthesizedExpression(parent) || !ts.isBinaryExpression(parent.parent)) return false;
  const { operatorToken, right } = parent.parent;
  return operatorToken.kind === ts.SyntaxKind.BarToken && ts.isNumericLiteral(right) && right.text === "0";
}

/** Whether the assignment `node` is a statement of a `for` loop's head, or a part of one. */
function isStep(node: ts.Node): boolean {
  return ts.isForStatement(node.parent) && (node.parent.incrementor === node || node.parent.initializer === node);
}

function isInside(node: ts.Node, outer: ts.Node): boolean {
  return node.pos >= outer.pos && node.end <= outer.end;
}

/** The names that a declaration binds. */
export function boundNames(name: ts.BindingName): string[] {
  if (ts.isIdentifier(name)) return [name.text];
  return name.elements.flatMap((element) => ts.isBindingElement(element) ? boundNames(element.name) : []);
}
