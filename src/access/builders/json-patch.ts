import { isDeepStrictEqual } from 'node:util';
import jsonpatch from 'jsonpatch';
import { isRecord, valueWeight } from '../../kit/json-value.ts';
import { type PatchOperation, parsePatchOperation, patchViolation } from '../policy/patch-operation.ts';
import type { Violation } from '../policy/policy.ts';
import { PlanBudget } from './plan-budget.ts';

type Patched = { readonly document: unknown } | { readonly violation: Violation };

/**
 * Applies RFC 6902 operations in order and stops at the first that cannot be applied. Neither `document` nor `operations` is changed;
 * the result may share structure with both. The document must hold plain JSON (see copyJson).
 * Each operation spends what it copies, compares, and traverses. Throws `PlanTooLarge` once `budget` is spent.
 */
export function applyJsonPatch(
  document: unknown,
  operations: readonly unknown[],
  budget: PlanBudget = new PlanBudget(),
): Patched {
  let current = document;
  for (const [index, raw] of operations.entries()) {
    const parsed = parsePatchOperation(raw, index, (value) => budget.copy(value));
    if ('violation' in parsed) return parsed;
    const outcome = applyOperation(current, parsed.operation, budget);
    if ('why' in outcome) return { violation: patchViolation(index, raw, outcome.why) };
    current = outcome.document;
  }
  return { document: current };
}

type Outcome = { readonly document: unknown } | { readonly why: string };

function applyOperation(document: unknown, operation: PatchOperation, budget: PlanBudget): Outcome {
  switch (operation.op) {
    case 'test':
      return applyTest(document, operation, budget);
    case 'add':
      return addAt(document, operation.path, operation.value, budget);
    case 'copy': {
      const source = follow(document, operation.from ?? [], budget);
      if ('why' in source) return source;
      // Copies of copies double the document with each operation. The copy shares nothing, so its cost also bounds memory.
      const copied = budget.copy(source.value);
      return 'problem' in copied
        ? { why: `the value at ${pointer(operation.from ?? [])} ${copied.problem}` }
        : addAt(document, operation.path, copied.value, budget);
    }
    case 'move': {
      const from = operation.from ?? [];
      const source = follow(document, from, budget);
      if ('why' in source) return source;
      if (isDeepStrictEqual(from, operation.path)) return { document };
      if (from.every((token, depth) => token === operation.path[depth])) {
        return { why: `${pointer(from)} cannot be moved into itself` };
      }
      const without = run(document, { op: 'remove', path: pointer(from) });
      return 'why' in without ? without : addAt(without.document, operation.path, source.value, budget);
    }
    case 'remove':
    case 'replace': {
      const target = follow(document, operation.path, budget);
      if ('why' in target) return target;
      if (operation.op === 'replace') {
        return run(document, { op: 'replace', path: pointer(operation.path), value: operation.value });
      }
      if (operation.path.length === 0) return { why: 'the whole document cannot be removed' };
      return run(document, { op: 'remove', path: pointer(operation.path) });
    }
  }
}

/** Cost of a comparison relative to a copy. */
const comparisonFactor = 6;

/** Implements `test`, because the library accepts any two objects as equal. */
function applyTest(document: unknown, operation: PatchOperation, budget: PlanBudget): Outcome {
  const target = follow(document, operation.path, budget);
  if ('why' in target) return target;
  const found = budget.copy(target.value);
  if ('problem' in found) return { why: `the value found ${found.problem}` };
  budget.spend(comparisonFactor * found.weight);
  // Equal by value, as in RFC 6902 section 4.6: the copy drops prototypes, and -0 equals 0.
  if (isDeepStrictEqual(comparable(found.value), comparable(operation.value))) return { document };
  return { why: `the value found is ${brief(found.value)}, not ${brief(operation.value)}` };
}

/** Implements `add`. The library ignores an add whose parent is a string or number; here it is an error. */
function addAt(document: unknown, path: readonly string[], value: unknown, budget: PlanBudget): Outcome {
  const parent = follow(document, path.slice(0, -1), budget);
  if ('why' in parent) return parent;
  const token = path.at(-1);
  if (token !== undefined) {
    if (Array.isArray(parent.value)) {
      const index = token === '-' ? parent.value.length : arrayIndex(token);
      if (index === undefined || index > parent.value.length) {
        return {
          why: `${token} is no index of a list of ${parent.value.length}; use 0 to ${parent.value.length} or -`,
        };
      }
    } else if (!isRecord(parent.value)) {
      return { why: `${pointer(path.slice(0, -1)) || 'the document'} is neither an object nor a list` };
    }
  }
  return run(document, { op: 'add', path: pointer(path), value });
}

/** Applies one operation by the library; an exception becomes the reason. */
function run(document: unknown, operation: { op: string; path: string; value?: unknown }): Outcome {
  try {
    return { document: jsonpatch.apply_patch(document, [operation]) };
  } catch (error) {
    return { why: error instanceof Error ? error.message : String(error) };
  }
}

/** The value at `path`. Spends the width of every level on the path, because the library copies these levels to change the value. */
function follow(
  document: unknown,
  path: readonly string[],
  budget: PlanBudget,
): { readonly value: unknown } | { readonly why: string } {
  let value = document;
  budget.spend(valueWeight * widthOf(value));
  for (const [depth, token] of path.entries()) {
    const index = Array.isArray(value) ? arrayIndex(token) : undefined;
    if (Array.isArray(value) && index !== undefined && index < value.length) value = value[index];
    else if (isRecord(value) && Object.hasOwn(value, token)) value = value[token];
    else return { why: `there is nothing at ${pointer(path.slice(0, depth + 1))}` };
    budget.spend(valueWeight * widthOf(value));
  }
  return { value };
}

const widthOf = (value: unknown): number =>
  Array.isArray(value) ? value.length : isRecord(value) ? Object.keys(value).length : 0;

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
