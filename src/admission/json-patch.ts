import { CodedError, quote } from '../kit/errors.ts';
import { isRecord } from '../kit/json-value.ts';

/** The operations of RFC 6902 that a handler has a use for. */
export type JsonPatchOp =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/** Where a value is, as property names from the root: `['metadata', 'finalizers']`. */
export type FieldPath = readonly [string, ...string[]];

/**
 * Writes a JSON Patch against `document` by saying what shall be there, not by comparing. The document itself is not changed;
 * the operations apply in the order they were made. Parents that do not exist are created.
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
   * Puts `value` at `path`, over whatever is there.
   * @throws CodedError `UnpatchablePath` for a path through a scalar or a list, and for tokens that reach a prototype.
   */
  set(path: FieldPath, value: unknown): this {
    for (let depth = 1; depth < path.length; depth++) this.#ensureObject(path.slice(0, depth));
    // `add` replaces what is there already (RFC 6902, 4.1), so it serves both cases.
    this.#ops.push({ op: 'add', path: pointer(path), value });
    return this;
  }

  /** Takes away what is at `path`; nothing when nothing is there. @throws CodedError `UnpatchablePath`. */
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

/** RFC 6901. @throws CodedError `UnpatchablePath` for tokens that some patch libraries would follow into a prototype. */
export function pointer(path: readonly string[]): string {
  return path.map((token) => `/${escapeToken(token)}`).join('');
}

function escapeToken(token: string): string {
  if (reachesPrototype.has(token)) throw new CodedError('UnpatchablePath', `a patch may not touch ${quote(token)}`);
  return token.replaceAll('~', '~0').replaceAll('/', '~1');
}
