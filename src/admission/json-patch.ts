import { CodedError, quote } from '../kit/errors.ts';
import { isRecord } from '../kit/json-value.ts';

/** The operations of RFC 6902 that handlers use. */
export type JsonPatchOp =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/** Property names from the root to a value, for example `['metadata', 'finalizers']`. */
export type FieldPath = readonly [string, ...string[]];

/**
 * Builds a JSON Patch for `document` from wanted values, without comparing two documents. It does not change the document. The
 * operations apply in call order and create missing parents.
 */
export class PatchBuilder {
  readonly #document: unknown;
  readonly #ops: JsonPatchOp[] = [];
  readonly #created = new Set<string>();

  constructor(document: unknown) {
    this.#document = document;
  }

  get ops(): readonly JsonPatchOp[] {
    return this.#ops;
  }

  /**
   * Sets the value at `path`, or replaces it.
   * @throws CodedError `UnpatchablePath` for a path through a scalar or a list, and for tokens that reach a prototype.
   */
  set(path: FieldPath, value: unknown): this {
    for (let depth = 1; depth < path.length; depth++) this.#ensureObject(path.slice(0, depth));
    // `add` also replaces an existing value (RFC 6902, 4.1).
    this.#ops.push({ op: 'add', path: pointer(path), value });
    return this;
  }

  /** Removes the value at `path`, if there is one. @throws CodedError `UnpatchablePath`. */
  remove(path: FieldPath): this {
    const text = pointer(path);
    if (this.#lookup(path).found) this.#ops.push({ op: 'remove', path: text });
    return this;
  }

  #ensureObject(path: readonly string[]): void {
    const text = pointer(path);
    if (this.#created.has(text)) return;
    const { found, value } = this.#lookup(path);
    if (found && isRecord(value)) return;
    if (found && value !== null) throw new CodedError('UnpatchablePath', `${text} is not an object`);
    this.#ops.push({ op: 'add', path: text, value: {} });
    this.#created.add(text);
  }

  #lookup(path: readonly string[]): { found: boolean; value: unknown } {
    let value = this.#document;
    for (const token of path) {
      if (!isRecord(value) || !Object.hasOwn(value, token)) return { found: false, value: undefined };
      value = value[token];
    }
    return { found: true, value };
  }
}

const reachesPrototype = new Set(['__proto__', 'constructor', 'prototype']);

/** Encodes a JSON Pointer (RFC 6901). @throws CodedError `UnpatchablePath` for tokens that some patch libraries follow into a prototype. */
export function pointer(path: readonly string[]): string {
  return path.map((token) => `/${escapeToken(token)}`).join('');
}

function escapeToken(token: string): string {
  if (reachesPrototype.has(token))
    throw new CodedError('UnpatchablePath', `a patch path must not contain ${quote(token)}`);
  return token.replaceAll('~', '~0').replaceAll('/', '~1');
}
