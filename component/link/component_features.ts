/** Facts about a whole component that decide how its functions are called. */
import type { Component, Declaration, Definition, TypeExpr } from "../model/definitions.ts";

/** Built-ins that block, or that only tasks can call. */
const ASYNC = /^(task|subtask|stream|future|waitable|waitable-set|backpressure|thread)\./;

/** True for `usesAsync` if some function may block; for `needsTasks` if core code can observe its task. */
export function featuresOf(component: Component): { usesAsync: boolean; needsTasks: boolean } {
  const facts = { usesAsync: false, needsTasks: false };
  visit(component, facts);
  return facts;
}

function visit(component: Component, facts: { usesAsync: boolean; needsTasks: boolean }): void {
  for (const definition of component.definitions) {
    if (definition.kind === "component") visit(definition.component, facts);
    else if (definition.kind === "canon") {
      const { canon } = definition;
      if (ASYNC.test(canon.name)) facts.usesAsync = true;
      if ("options" in canon && canon.options.some(({ kind }) => kind === "async")) facts.usesAsync = true;
      if (canon.name === "context.get" || canon.name === "context.set") facts.needsTasks = true;
    } else if (hasAsyncType(definition)) facts.usesAsync = true;
  }
}

function hasAsyncType(definition: Definition | Declaration): boolean {
  return definition.kind === "type" && isAsyncType(definition.type);
}

function isAsyncType(type: TypeExpr): boolean {
  if (type.kind === "func") return type.async;
  return (type.kind === "instance" || type.kind === "component") && type.declarations.some(hasAsyncType);
}
