/**
 * The string operations of the builtins, taken from the realm when the engine is loaded. In: strings and numbers. Out:
 * the results of the specification's operations. Invariant: a program that replaces methods of `String` or its
 * prototype later changes nothing here, as the builtins require.
 */
const { charCodeAt, codePointAt, substring } = String.prototype;

/** A method as a function whose first argument is the string. */
function asFunction<Args extends unknown[], Result>(
  method: (this: string, ...args: Args) => Result,
): (text: string, ...args: Args) => Result {
  return Function.prototype.call.bind(method) as (text: string, ...args: Args) => Result;
}

/** `text.charCodeAt(index)`. */
export const charCodeOf: (text: string, index: number) => number = asFunction(charCodeAt);

/** `text.codePointAt(index)`. */
export const codePointOf: (text: string, index: number) => number | undefined = asFunction(codePointAt);

/** `text.substring(from, to)`. */
export const substringOf: (text: string, from: number, to: number) => string = asFunction(substring);

/** `String.fromCharCode` and `String.fromCodePoint`. */
export const { fromCharCode, fromCodePoint } = String;

const { apply } = Reflect;

/** The string of `units`, at most a few thousand, because each is passed as an argument. */
export function textOfUnits(units: ArrayLike<number>): string {
  return apply(fromCharCode, undefined, units);
}
