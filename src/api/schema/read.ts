import { parseTime } from '../../kit/clock.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import type { StructuralSchema } from './structural-schema.ts';

/** The JSON path of the field, and what is allowed and, where it helps, what was found. */
export interface FieldError {
  readonly field: string;
  readonly message: string;
}

/** 1 to 10 errors from `readBySchema`; 1 to 30 from `readObject`, which reads three parts. */
export type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly errors: FieldError[] };

const MAX_ERRORS = 10;
/** UTF-16 units of quoted input in a message. */
const MAX_QUOTE = 64;

/** For an absent field, or after an error. */
const nothing = Symbol('nothing');

/**
 * Reads untrusted input as the API server does: drops unknown fields, treats null as absent,
 * applies defaults. Own properties only, no CEL rules, no uniqueness in lists; it also drops
 * unknown fields of objects with `properties` that preserve them. Parts of the input remain only
 * where a schema has no shape. Never throws. The caller must ensure that the schema describes T.
 */
export function readBySchema<T>(schema: StructuralSchema, input: unknown, field: string): Read<T> {
  const reader = new Reader();
  const value = reader.value(schema, input, field);
  if (reader.errors.length === 0 && value === nothing) reader.refuse(field, 'is required');
  return reader.errors.length > 0 ? { ok: false, errors: reader.errors } : { ok: true, value: value as T };
}

class Reader {
  readonly errors: FieldError[] = [];

  value(schema: StructuralSchema, input: unknown, field: string): unknown {
    if (input === undefined || (input === null && schema.nullable !== true)) {
      return schema.default === undefined ? nothing : structuredClone(schema.default);
    }
    if (input === null) return null;
    if (schema['x-kubernetes-int-or-string']) return this.#intOrString(schema, input, field);
    switch (schema.type) {
      case 'object':
        return this.#object(schema, input, field);
      case 'array':
        return this.#list(schema, input, field);
      case 'string':
        return typeof input === 'string' ? this.#text(schema, input, field) : this.#wrongType('a string', input, field);
      case 'boolean':
        return typeof input === 'boolean' ? input : this.#wrongType('true or false', input, field);
      case 'integer':
      case 'number':
        return this.#number(schema, input, field);
      default:
        return input;
    }
  }

  refuse(field: string, message: string): typeof nothing {
    if (this.errors.length < MAX_ERRORS) this.errors.push({ field, message });
    return nothing;
  }

  #object(schema: StructuralSchema, input: unknown, field: string): unknown {
    if (!isRecord(input)) return this.#wrongType('an object', input, field);
    if (schema.additionalProperties) return this.#map(schema, schema.additionalProperties, input, field);
    if (!schema.properties) return input;
    const result: [string, unknown][] = [];
    for (const [name, property] of Object.entries(schema.properties)) {
      if (this.errors.length >= MAX_ERRORS) return nothing;
      const path = field === '' ? name : `${field}.${name}`;
      const before = this.errors.length;
      const value = this.value(property, own(input, name), path);
      if (value !== nothing) result.push([name, value]);
      else if (this.errors.length === before && schema.required?.includes(name)) this.refuse(path, 'is required');
    }
    return Object.fromEntries(result);
  }

  #map(schema: StructuralSchema, values: StructuralSchema, input: Record<string, unknown>, field: string): unknown {
    const keys = Object.keys(input);
    const { maxProperties = Number.POSITIVE_INFINITY } = schema;
    if (keys.length > maxProperties) {
      return this.refuse(field, `has ${keys.length} entries; at most ${maxProperties} are allowed`);
    }
    const result: [string, unknown][] = [];
    for (const key of keys) {
      if (this.errors.length >= MAX_ERRORS) return nothing;
      const value = this.value(values, input[key], `${field}[${quote(key)}]`);
      if (value !== nothing) result.push([key, value]);
    }
    return Object.fromEntries(result);
  }

  #list(schema: StructuralSchema, input: unknown, field: string): unknown {
    if (!Array.isArray(input)) return this.#wrongType('a list', input, field);
    const { minItems = 0, maxItems = Number.POSITIVE_INFINITY, items = {} } = schema;
    if (input.length < minItems)
      return this.refuse(field, `has ${input.length} items; at least ${minItems} must be set`);
    if (input.length > maxItems)
      return this.refuse(field, `has ${input.length} items; at most ${maxItems} are allowed`);
    const result: unknown[] = [];
    for (const [index, item] of input.entries()) {
      if (this.errors.length >= MAX_ERRORS) return nothing;
      const path = `${field}[${index}]`;
      const before = this.errors.length;
      const value = this.value(items, item, path);
      if (value !== nothing) result.push(value);
      else if (this.errors.length === before) this.refuse(path, 'may not be null');
    }
    return result;
  }

  #text(schema: StructuralSchema, input: string, field: string): unknown {
    const { minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema;
    if (input.length < minLength)
      return this.refuse(field, minLength === 1 ? 'may not be empty' : `must have at least ${minLength} characters`);
    // The API server counts code points. Count them only if UTF-16 units do not decide.
    if (input.length > maxLength && (input.length > 2 * maxLength || [...input].length > maxLength)) {
      return this.refuse(field, `is longer than ${maxLength} characters`);
    }
    if (schema.enum && !schema.enum.includes(input)) {
      return this.refuse(field, `must be one of ${schema.enum.map(quote).join(', ')}; found ${quote(input)}`);
    }
    if (schema.pattern !== undefined && !new RegExp(schema.pattern, 'u').test(input)) {
      return this.refuse(field, `must match ${schema.pattern}; found ${quote(input)}`);
    }
    if (schema.format === 'date-time' && parseTime(input) === undefined) {
      return this.refuse(field, `must be an RFC 3339 time such as 2026-11-21T09:30:00Z; found ${quote(input)}`);
    }
    return input;
  }

  #number(schema: StructuralSchema, input: unknown, field: string): unknown {
    const whole = schema.type === 'integer';
    if (typeof input !== 'number' || !Number.isFinite(input) || (whole && !Number.isSafeInteger(input))) {
      return this.#wrongType(whole ? 'a whole number' : 'a number', input, field);
    }
    const { minimum, maximum } = schema;
    if (minimum !== undefined && input < minimum)
      return this.refuse(field, `must be at least ${minimum}; found ${input}`);
    if (maximum !== undefined && input > maximum)
      return this.refuse(field, `must be at most ${maximum}; found ${input}`);
    return input;
  }

  #intOrString(schema: StructuralSchema, input: unknown, field: string): unknown {
    if (typeof input === 'string') return this.#text(schema, input, field);
    return Number.isSafeInteger(input) ? input : this.#wrongType('a whole number or a string', input, field);
  }

  #wrongType(expected: string, input: unknown, field: string): typeof nothing {
    return this.refuse(field, `must be ${expected}; found ${describe(input)}`);
  }
}

function describe(input: unknown): string {
  if (input === null) return 'null';
  if (Array.isArray(input)) return 'a list';
  if (typeof input === 'string') return quote(input);
  if (typeof input === 'number' || typeof input === 'boolean') return String(input);
  return typeof input === 'object' ? 'an object' : `a ${typeof input}`;
}

function quote(text: string): string {
  return JSON.stringify(text.length > MAX_QUOTE ? `${text.slice(0, MAX_QUOTE)}…` : text);
}
