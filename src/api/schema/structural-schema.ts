import type { TSchema } from 'typebox';

/** The API server evaluates it on every write; a rule with `oldSelf` only on updates. */
export interface CelRule {
  readonly rule: string;
  /** What is wrong and what to do, for the author of the rejected write. */
  readonly message: string;
  /** CEL for a message with values of the object; `message` stands in if it fails. */
  readonly messageExpression?: string;
  readonly reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired';
  /** Relative to the schema with the rule, for example `.maxDuration`. */
  readonly fieldPath?: string;
}

/** The subset of CustomResourceDefinition schemas that drawbridge uses. */
export interface StructuralSchema {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  readonly description?: string;
  readonly default?: unknown;
  readonly nullable?: boolean;
  readonly enum?: readonly string[];
  readonly format?: string;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: StructuralSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: StructuralSchema;
  readonly maxProperties?: number;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: 'atomic' | 'granular';
  readonly 'x-kubernetes-validations'?: readonly CelRule[];
}

type Json = Readonly<Record<string, unknown>>;

/** The same in JSON Schema and in a structural schema. */
const copiedKeywords: ReadonlySet<string> = new Set([
  'description',
  'default',
  'nullable',
  'enum',
  'format',
  'pattern',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'minItems',
  'maxItems',
  'maxProperties',
  'x-kubernetes-int-or-string',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-validations',
]);

/** Structural schemas write these in another way; the functions below convert them. */
const rewrittenKeywords: ReadonlySet<string> = new Set([
  'type',
  'properties',
  'required',
  'items',
  'patternProperties',
]);

const types: ReadonlySet<unknown> = new Set(['object', 'array', 'string', 'integer', 'number', 'boolean']);

/**
 * `required` omits properties with a default. Throws with the field's path on what a CRD cannot
 * express, and on unbounded strings, lists, and maps: the API server must bound the cost of CEL.
 */
export function toStructural(schema: TSchema, path = 'schema'): StructuralSchema {
  const source = schema as Json;
  for (const key of Object.keys(source)) {
    if (!copiedKeywords.has(key) && !rewrittenKeywords.has(key)) refuse(path, `"${key}" is not structural`);
  }
  const result: Record<string, unknown> = {};
  for (const key of Object.keys(source)) if (copiedKeywords.has(key)) result[key] = source[key];
  if (source['type'] === undefined) {
    if (source['x-kubernetes-int-or-string'] === true || source['x-kubernetes-preserve-unknown-fields'] === true)
      return result;
    refuse(path, 'a type is missing');
  }
  if (!types.has(source['type'])) refuse(path, `type ${JSON.stringify(source['type'])} is not structural`);
  return { type: source['type'], ...result, ...keywordsOfType(source, path) } as StructuralSchema;
}

function keywordsOfType(source: Json, path: string): Partial<Record<keyof StructuralSchema, unknown>> {
  switch (source['type']) {
    case 'object':
      return source['patternProperties'] === undefined ? objectOf(source, path) : mapOf(source, path);
    case 'array':
      if (source['maxItems'] === undefined) refuse(path, 'a list needs maxItems');
      return { items: toStructural(source['items'] as TSchema, `${path}[]`) };
    case 'string':
      if (['maxLength', 'enum'].every((bound) => source[bound] === undefined) && source['format'] !== 'date-time')
        refuse(path, 'a string needs maxLength');
      return {};
    default:
      return {};
  }
}

function objectOf(source: Json, path: string): Partial<StructuralSchema> {
  if (source['properties'] === undefined) {
    if (source['x-kubernetes-preserve-unknown-fields'] === true) return {};
    refuse(path, 'an object needs properties');
  }
  const properties: Record<string, StructuralSchema> = {};
  for (const [name, property] of Object.entries(source['properties'] as Record<string, TSchema>))
    properties[name] = toStructural(property, `${path}.${name}`);
  const required = ((source['required'] ?? []) as string[]).filter((name) => properties[name]?.default === undefined);
  return required.length > 0 ? { properties, required } : { properties };
}

/** A CRD has only additionalProperties, so it cannot constrain keys. */
function mapOf(source: Json, path: string): Partial<StructuralSchema> {
  const patterns = Object.entries(source['patternProperties'] as Record<string, TSchema>);
  const [pattern] = patterns;
  if (!pattern || patterns.length > 1 || pattern[0] !== '^.*$') refuse(path, 'a map may not constrain its keys');
  if (source['maxProperties'] === undefined) refuse(path, 'a map needs maxProperties');
  return { additionalProperties: toStructural(pattern[1], `${path}.*`) };
}

function refuse(path: string, problem: string): never {
  throw new Error(`${path}: ${problem}`);
}
