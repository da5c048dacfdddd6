import { quote } from '../../kit/errors.ts';
import { copyJson, isRecord, type JsonCopy, own } from '../../kit/json-value.ts';
import { inAnyPosition, type Violation } from './policy.ts';

export interface PatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  /** Reference tokens of the JSON Pointer, unescaped. */
  readonly path: readonly string[];
  /** move and copy only, unescaped. */
  readonly from: readonly string[] | undefined;
  /** add, replace, and test only; a copy of the input. */
  readonly value: unknown;
}

const OPERATIONS = ['add', 'remove', 'replace', 'move', 'copy', 'test'] as const;
const nullRemedy =
  'write one, or use kubectl apply --server-side if it is null, because kubectl apply drops a null without that flag';
/** UTF-16 units of a JSON pointer in a message. */
export const maxShownPointer = 120;
/** UTF-16 units of a JSON pointer. */
const MAX_POINTER = 1024;
const FIELD = 'spec.controllerTargetMutationConfig.patchSpecOperations';

/** Checks `op`, the pointers, and the value; `applyJsonPatch` the rest. Ignores unknown members. */
export function parsePatchOperation(
  raw: unknown,
  index: number,
  copy: (value: unknown) => JsonCopy = copyJson,
): { readonly operation: PatchOperation } | { readonly violation: Violation } {
  if (!isRecord(raw)) return refuse(index, raw, 'must be an object with op and path');
  const op = OPERATIONS.find((name) => name === own(raw, 'op'));
  if (!op) return refuse(index, raw, `op must be one of ${OPERATIONS.join(', ')}`, 'op');
  const path = parsePointer(own(raw, 'path'));
  if ('problem' in path) return refuse(index, raw, `path ${path.problem}`, 'path');
  const needsFrom = op === 'move' || op === 'copy';
  const from = needsFrom ? parsePointer(own(raw, 'from')) : undefined;
  if (from && 'problem' in from) return refuse(index, raw, `from ${from.problem}`, 'from');
  const needsValue = op === 'add' || op === 'replace' || op === 'test';
  if (needsValue && own(raw, 'value') === undefined) {
    return refuse(index, raw, `${op} needs a value; ${nullRemedy}`, 'value');
  }
  const value = needsValue ? copy(own(raw, 'value')) : { value: undefined };
  if ('problem' in value) return refuse(index, raw, `value ${value.problem}`, 'value');
  return { operation: { op, path: path.tokens, from: from?.tokens, value: value.value } };
}

/** RFC 6901. The empty string is the whole document. */
function parsePointer(pointer: unknown): { readonly tokens: readonly string[] } | { readonly problem: string } {
  if (typeof pointer !== 'string') return { problem: 'must be a JSON Pointer such as /spec/containers/0/image' };
  if (pointer.length > MAX_POINTER) return { problem: `is longer than ${MAX_POINTER} characters; shorten it` };
  if (pointer === '') return { tokens: [] };
  if (!pointer.startsWith('/')) return { problem: 'must begin with "/", as in /spec/containers/0/image' };
  if (/~(?![01])/.test(pointer)) return { problem: 'has a "~" that is neither ~0 (for "~") nor ~1 (for "/")' };
  const tokens = pointer
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
  return tokens.includes('__proto__') ? { problem: 'must not go through __proto__' } : { tokens };
}

export function patchViolation(index: number, raw: unknown, why: string, member?: string): Violation {
  const [op, path] = [own(raw, 'op'), own(raw, 'path')];
  const shownOp = OPERATIONS.find((name) => name === op) ?? (typeof op === 'string' ? quote(op) : '');
  const shown = [shownOp, typeof path === 'string' ? quote(path, maxShownPointer) : ''].filter(Boolean).join(' ');
  const field = `${FIELD}[${index}]${member ? `.${member}` : ''}`;
  const textAt = (path: string): string => `${path}${shown ? ` (${shown})` : ''}: ${why}`;
  return { code: 'InvalidTemplate', message: textAt(field), field, status: 422, key: textAt(inAnyPosition(field)) };
}

const refuse = (index: number, raw: unknown, why: string, member?: string): { readonly violation: Violation } => ({
  violation: patchViolation(index, raw, why, member),
});
