import { CodedError, quote } from '../kit/errors.ts';
import { pointerOf } from '../kit/json-pointer.ts';
import { isRecord, own } from '../kit/json-value.ts';

export type AdmissionPatchOp =
  | { readonly op: 'add'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/** From the root, such as `['metadata', 'finalizers']`. */
export type FieldPath = readonly [string, ...string[]];

/** A JSON Patch, step by step: `new PatchBuilder(object).set(['spec', 'author'], author).ops`. */
export class PatchBuilder {
  /** With all operations applied. */
  #patched: unknown;
  readonly #ops: AdmissionPatchOp[] = [];

  constructor(document: unknown) {
    this.#patched = document;
  }

  get ops(): readonly AdmissionPatchOp[] {
    return this.#ops;
  }

  /**
   * Creates missing or null parents.
   * @throws CodedError `UnpatchablePath` for a path through a scalar, a list, or a prototype.
   */
  set(path: FieldPath, value: unknown): this {
    for (let depth = 1; depth < path.length; depth++) this.#ensureObject(path.slice(0, depth) as [string, ...string[]]);
    this.#add(path, value);
    return this;
  }

  /**
   * No effect without a value. @throws CodedError `UnpatchablePath` for a path through a prototype.
   */
  remove(path: FieldPath): this {
    const pointer = patchPointer(path);
    if (this.#valueAt(path) === undefined) return this;
    this.#ops.push({ op: 'remove', path: pointer });
    this.#patched = withValue(this.#patched, path, undefined);
    return this;
  }

  #ensureObject(path: FieldPath): void {
    const value = this.#valueAt(path);
    if (isRecord(value)) return;
    if (value !== undefined && value !== null) {
      const message = `the value at ${patchPointer(path)} is not an object; a patch can only set fields of objects`;
      throw new CodedError('UnpatchablePath', message);
    }
    this.#add(path, {});
  }

  #add(path: FieldPath, value: unknown): void {
    // `add` also replaces an existing value (RFC 6902, 4.1).
    this.#ops.push({ op: 'add', path: patchPointer(path), value });
    this.#patched = withValue(this.#patched, path, value);
  }

  #valueAt(path: FieldPath): unknown {
    return path.reduce(own, this.#patched);
  }
}

/** Copies only the objects on the path; undefined removes the value. */
function withValue(document: unknown, [name, ...rest]: FieldPath, value: unknown): unknown {
  const [next, ...below] = rest;
  const inner = next === undefined ? value : withValue(own(document, name), [next, ...below], value);
  return { ...(isRecord(document) ? document : {}), [name]: inner };
}

/** Some patch libraries follow these into a prototype. */
const prototypeNames = new Set(['__proto__', 'constructor', 'prototype']);

function patchPointer(path: FieldPath): string {
  const forbidden = path.find((name) => prototypeNames.has(name));
  if (forbidden === undefined) return pointerOf(...path);
  throw new CodedError('UnpatchablePath', `a patch path must not contain ${quote(forbidden)}; choose another field`);
}
