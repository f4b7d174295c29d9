/**
 * Rows about the shape of the namespace: names, attributes of properties, prototypes, receivers.
 */
import { attributes, type Namespace, type Row, run, thrown } from "./subject.ts";

const INTERFACES = ["Module", "Instance", "Memory", "Table", "Global", "Tag", "Exception", "Suspending"];
const ERRORS = ["CompileError", "LinkError", "RuntimeError"];
/** Properties that errors have by themselves: in JavaScriptCore also where they come from. */
const OF_EVERY_ERROR = new Set(Object.getOwnPropertyNames(new Error()));
const MEMBERS: readonly (readonly [string, string])[] = [
  ["Instance", "exports"],
  ["Memory", "buffer"],
  ["Memory", "grow"],
  ["Table", "get"],
  ["Table", "set"],
  ["Table", "grow"],
  ["Table", "length"],
  ["Global", "value"],
  ["Global", "valueOf"],
  ["Exception", "is"],
  ["Exception", "getArg"],
  ["Exception", "stack"],
];

function memberOf(W: Namespace, name: string, member: string): PropertyDescriptor {
  return Object.getOwnPropertyDescriptor(W[name].prototype, member)!;
}

export const INTERFACE_ROWS: readonly Row[] = [
  ["the namespace has a name", (W) => [String(W), attributes(W, Symbol.toStringTag), Object.keys(W).sort()]],
  ["the namespace cannot be called", (W) => [thrown(W, () => W()), thrown(W, () => new W())]],
  ...["compile", "instantiate", "validate", "compileStreaming", "instantiateStreaming", "promising"].map((
    name,
  ): Row => [
    `the operation ${name}`,
    (W) => [attributes(W, name), W[name].name, W[name].length, "prototype" in W[name], thrown(W, () => new W[name]())],
  ]),
  ...INTERFACES.flatMap((name): Row[] => [
    [`the interface ${name}`, (W) => [attributes(W, name), W[name].name, W[name].length]],
    [`the prototype of ${name}`, (W) => [
      attributes(W[name], "prototype"),
      attributes(W[name].prototype, "constructor"),
      attributes(W[name].prototype, Symbol.toStringTag),
      String(W[name].prototype),
      W[name].prototype.constructor === W[name],
    ]],
    [`${name} is not called without new`, (W) => thrown(W, () => W[name]({}))],
    [`${name} takes no missing argument`, (W) => thrown(W, () => new W[name]())],
    [`${name} takes no number`, (W) => thrown(W, () => new W[name](1))],
  ]),
  ...MEMBERS.flatMap(([name, member]): Row[] => [
    [`the attributes of ${name}.${member}`, (W) => attributes(W[name].prototype, member)],
    [`${name}.${member} wants its own receiver`, (W) => {
      const { get, set, value } = memberOf(W, name, member);
      return [get, set, value].filter((f) => f !== undefined).flatMap((f) =>
        [undefined, null, {}, 1, W[name], W[name].prototype].map((receiver) => thrown(W, () => f.call(receiver, 0, 0)))
      );
    }],
    [`the functions of ${name}.${member}`, (W) => {
      const { get, set, value } = memberOf(W, name, member);
      return [get, set, value].map((f) => f === undefined ? f : [f.name, f.length, "prototype" in f]);
    }],
  ]),
  ...["imports", "exports", "customSections"].map((name): Row => [
    `Module.${name}`,
    (
      W,
    ) => [
      attributes(W.Module, name),
      W.Module[name].length,
      thrown(W, () => W.Module[name]()),
      thrown(W, () => W.Module[name]({}, "")),
    ],
  ]),
  ...ERRORS.flatMap((name): Row[] => [
    [`the error ${name}`, (W) => {
      const error = new W[name]("what", { cause: 1 });
      return [
        attributes(W, name),
        W[name].name,
        W[name].length,
        Object.getPrototypeOf(W[name]) === Error,
        Object.getPrototypeOf(W[name].prototype) === Error.prototype,
        attributes(W[name], "prototype"),
        attributes(W[name].prototype, "name"),
        attributes(W[name].prototype, "message"),
        [error.name, error.message, error.cause, String(error), error instanceof Error, error.constructor === W[name]],
        Object.prototype.toString.call(error),
        Object.getOwnPropertyNames(error).filter((key) => key === "stack" || !OF_EVERY_ERROR.has(key)).sort(),
      ];
    }],
    [`${name} without new`, (W) => [W[name]("what") instanceof W[name], W[name]().message]],
    [`${name} can be extended`, (W) => {
      class Own extends (W[name] as ErrorConstructor) {}
      const own = new Own("x");
      return [own instanceof Own, own instanceof W[name], own.message, own.stack!.includes("x")];
    }],
  ]),
  ["Exception has the prototype of errors", (W) => Object.getPrototypeOf(W.Exception.prototype) === Error.prototype],
  ["JSTag is a tag", (W) => [attributes(W, "JSTag"), W.JSTag instanceof W.Tag, String(W.JSTag)]],
  ["interfaces can be extended", (W) => {
    class Own extends (W.Memory as typeof WebAssembly.Memory) {}
    const own = new Own({ initial: 1 });
    return [own instanceof Own, own.buffer.byteLength];
  }],
  ["an exported function", (W) => {
    const { f, g, h } = run(
      W,
      `(module (func (export "f") (param i32 i64) (result i32) (i32.const 1)) (func $g (export "g") (export "h")))`,
    );
    return [
      [f, g],
      g === h,
      f instanceof Function,
      Object.getPrototypeOf(f) === Function.prototype,
      attributes(f, "name"),
      attributes(f, "length"),
      "prototype" in f,
      thrown(W, () => new f()),
      Object.prototype.toString.call(f),
      thrown(W, () => f.call(null, 1, 2n)),
      thrown(W, () => Reflect.construct(Object, [], f)),
      Object.isExtensible(f),
    ];
  }],
  ["modules inherit from the class of module sources", (W) => {
    const source = Object.getPrototypeOf(W.Module);
    const module = new W.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
    const { get } = Object.getOwnPropertyDescriptor(source.prototype ?? {}, Symbol.toStringTag) ?? {};
    return [
      source.name,
      Object.getPrototypeOf(W.Module.prototype) === source.prototype,
      get === undefined ? "" : [get.call(module), get.call({}), get.call(5), get.name],
    ];
  }],
];
