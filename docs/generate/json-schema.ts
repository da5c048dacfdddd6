/** The keywords that values.schema.json and the schemas of the kinds use. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly const?: string;
  readonly anyOf?: readonly JsonSchema[];
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly 'x-kubernetes-int-or-string'?: boolean;
}

/** Follows `$ref` to `$defs` of `root`. */
export function resolve(schema: JsonSchema, root: JsonSchema): JsonSchema {
  const name = schema.$ref?.replace('#/$defs/', '');
  return name === undefined ? schema : (root.$defs?.[name] ?? schema);
}

export const limitUnits = 'Limits are characters of a string, items of a list, or keys of a map.';

/** Type and limits, for example `integer, 1 to 9`, or `list of string, at most 64`. */
export function limitsOf(schema: JsonSchema, root: JsonSchema = schema): string {
  return [typeOf(schema, root), ...bounds(schema)].join(', ');
}

const alternatives = new Intl.ListFormat('en-US', { type: 'disjunction' });

function typeOf(schema: JsonSchema, root: JsonSchema): string {
  if (schema.enum) return alternatives.format(schema.enum.map((value) => `\`${value}\``));
  if (schema['x-kubernetes-int-or-string']) return 'integer or string';
  if (schema.anyOf) return 'string';
  if (schema.type === 'array' && schema.items) return `list of ${typeOf(resolve(schema.items, root), root)}`;
  if (typeof schema.additionalProperties === 'object') return `map of ${typeOf(schema.additionalProperties, root)}`;
  return schema.format === 'date-time' ? 'time' : (schema.type ?? 'any');
}

const amount = (value: number): string => value.toLocaleString('en-US');

function bounds(schema: JsonSchema): string[] {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, maxProperties } = schema;
  return [
    range(minimum, maximum),
    range(minLength || undefined, maxLength),
    range(minItems || undefined, maxItems ?? maxProperties),
  ].filter((text) => text !== '');
}

function range(least: number | undefined, most: number | undefined): string {
  if (most === undefined) return least === undefined ? '' : `at least ${amount(least)}`;
  return least === undefined ? `at most ${amount(most)}` : `${amount(least)} to ${amount(most)}`;
}
