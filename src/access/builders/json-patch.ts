import { isDeepStrictEqual } from 'node:util';
import jsonpatch from 'jsonpatch';
import { copyJson, isRecord } from '../../kit/json-value.ts';
import { type PatchOperation, parsePatchOperation, patchViolation } from '../policy/patch-operation.ts';
import type { Violation } from '../policy/policy.ts';

type Patched = { readonly document: unknown } | { readonly violation: Violation };

/**
 * Applies RFC 6902 operations one after the other and stops at the first that cannot be applied. Neither `document` nor
 * `operations` is changed; the result may share structure with both. The document must hold plain JSON (see copyJson).
 */
export function applyJsonPatch(document: unknown, operations: readonly unknown[]): Patched {
  let current = document;
  for (const [index, raw] of operations.entries()) {
    const parsed = parsePatchOperation(raw, index);
    if ('violation' in parsed) return parsed;
    const outcome = applyOperation(current, parsed.operation);
    if ('why' in outcome) return { violation: patchViolation(index, raw, outcome.why) };
    current = outcome.document;
  }
  return { document: current };
}

type Outcome = { readonly document: unknown } | { readonly why: string };

function applyOperation(document: unknown, operation: PatchOperation): Outcome {
  switch (operation.op) {
    case 'test':
      return applyTest(document, operation);
    case 'add':
      return addAt(document, operation.path, operation.value);
    case 'copy': {
      const source = follow(document, operation.from ?? []);
      if ('why' in source) return source;
      const grown = addAt(document, operation.path, source.value);
      if ('why' in grown) return grown;
      // Copies of copies double the document with each operation: measure before the next one can.
      const measured = copyJson(grown.document);
      return 'problem' in measured ? { why: `the result ${measured.problem}` } : grown;
    }
    case 'move': {
      const from = operation.from ?? [];
      const source = follow(document, from);
      if ('why' in source) return source;
      if (isDeepStrictEqual(from, operation.path)) return { document };
      if (from.every((token, depth) => token === operation.path[depth])) {
        return { why: `${pointer(from)} cannot be moved into itself` };
      }
      const without = run(document, { op: 'remove', path: pointer(from) });
      return 'why' in without ? without : addAt(without.document, operation.path, source.value);
    }
    case 'remove':
    case 'replace': {
      const target = follow(document, operation.path);
      if ('why' in target) return target;
      if (operation.op === 'replace') {
        return run(document, { op: 'replace', path: pointer(operation.path), value: operation.value });
      }
      if (operation.path.length === 0) return { why: 'the whole document cannot be removed' };
      return run(document, { op: 'remove', path: pointer(operation.path) });
    }
  }
}

/** The library lets `test` pass for any two objects; only this comparison is trusted. */
function applyTest(document: unknown, operation: PatchOperation): Outcome {
  const target = follow(document, operation.path);
  if ('why' in target) return target;
  // Equal by value, as RFC 6902 4.6 has it: the copy drops prototypes, and -0 is 0.
  if (isDeepStrictEqual(comparable(target.value), comparable(operation.value))) return { document };
  return { why: `the value found is ${brief(target.value)}, not ${brief(operation.value)}` };
}

/** The library ignores an add whose parent is a string or number; it is an error. */
function addAt(document: unknown, path: readonly string[], value: unknown): Outcome {
  const parent = follow(document, path.slice(0, -1));
  if ('why' in parent) return parent;
  const token = path.at(-1);
  if (token !== undefined) {
    if (Array.isArray(parent.value)) {
      const index = token === '-' ? parent.value.length : arrayIndex(token);
      if (index === undefined || index > parent.value.length) {
        return {
          why: `${token} is no place in a list of ${parent.value.length}; use 0 to ${parent.value.length} or -`,
        };
      }
    } else if (!isRecord(parent.value)) {
      return { why: `${pointer(path.slice(0, -1)) || 'the document'} is neither an object nor a list` };
    }
  }
  return run(document, { op: 'add', path: pointer(path), value });
}

/** One operation, by the library; what it throws becomes the reason. */
function run(document: unknown, operation: { op: string; path: string; value?: unknown }): Outcome {
  try {
    return { document: jsonpatch.apply_patch(document, [operation]) };
  } catch (error) {
    return { why: error instanceof Error ? error.message : String(error) };
  }
}

function follow(document: unknown, path: readonly string[]): { readonly value: unknown } | { readonly why: string } {
  let value = document;
  for (const [depth, token] of path.entries()) {
    const index = Array.isArray(value) ? arrayIndex(token) : undefined;
    if (Array.isArray(value) && index !== undefined && index < value.length) value = value[index];
    else if (isRecord(value) && Object.hasOwn(value, token)) value = value[token];
    else return { why: `there is nothing at ${pointer(path.slice(0, depth + 1))}` };
  }
  return { value };
}

const arrayIndex = (token: string): number | undefined =>
  /^(0|[1-9]\d{0,8})$/.test(token) ? Number(token) : undefined;

const pointer = (tokens: readonly string[]): string =>
  tokens.map((token) => `/${token.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

function comparable(value: unknown): unknown {
  if (value === 0) return 0;
  if (Array.isArray(value)) return value.map(comparable);
  if (!isRecord(value)) return value;
  return new Map(Object.keys(value).map((field) => [field, comparable(value[field])]));
}

function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined';
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
