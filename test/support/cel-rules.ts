import { evaluate } from '@marcbachmann/cel-js';
import type { CelRule, StructuralSchema } from '../../src/api/schema/structural-schema.ts';

/**
 * The messages of the CEL rules by which an API server would deny a write. Evaluates the rules at every level of the schema.
 * Rules about changes (`oldSelf`) run only if both the old and the new value exist, as in the API server.
 */
export function celRefusals(schema: StructuralSchema, value: unknown, old?: unknown): string[] {
  const refusals = (schema['x-kubernetes-validations'] ?? []).filter((rule) => refuses(rule, value, old));
  const messages = refusals.map(({ message, messageExpression }) =>
    messageExpression === undefined ? message : String(evaluate(messageExpression, { self: value })),
  );
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const child = fieldOf(value, name);
    if (child !== undefined) messages.push(...celRefusals(property, child, fieldOf(old, name)));
  }
  const { items } = schema;
  if (items && Array.isArray(value)) messages.push(...value.flatMap((item) => celRefusals(items, item)));
  return messages;
}

function refuses({ rule }: CelRule, self: unknown, oldSelf: unknown): boolean {
  if (!rule.includes('oldSelf')) return fails(rule, { self });
  return oldSelf !== undefined && fails(rule, { self, oldSelf });
}

/** A rule that cannot be evaluated denies the write. */
function fails(rule: string, context: Record<string, unknown>): boolean {
  try {
    return evaluate(rule, context) !== true;
  } catch {
    return true;
  }
}

function fieldOf(value: unknown, name: string): unknown {
  return value === null || typeof value !== 'object' ? undefined : (value as Record<string, unknown>)[name];
}
