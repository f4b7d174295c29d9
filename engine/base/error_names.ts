/**
 * The names of classes of errors. In: the prototype of a class, and a name. Out: the property `name` of the prototype.
 */

/**
 * Sets the name of the errors with `prototype`. Defines the property, because an assignment fails if Error.prototype is
 * frozen; on the prototype, because an own property makes every error slower to create.
 */
export function nameErrors(prototype: Error, name: string): void {
  Object.defineProperty(prototype, "name", { value: name, writable: true, enumerable: false, configurable: true });
}
