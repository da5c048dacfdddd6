import { isDeepStrictEqual } from 'node:util';
import jsonpatch from 'jsonpatch';
import { quote } from '../../kit/errors.ts';
import { isRecord, own, valueWeight } from '../../kit/json-value.ts';
import {
  maxShownPointer,
  type PatchOperation,
  parsePatchOperation,
  patchViolation,
} from '../policy/patch-operation.ts';
import type { Violation } from '../policy/policy.ts';
import { PlanBudget } from './plan-budget.ts';

type Patched = { readonly document: unknown } | { readonly violation: Violation };

/**
 * Applies RFC 6902 operations in order, up to the first that fails. Changes neither input, but the
 * result may share structure with `document`. Throws `PlanTooLarge`.
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
    if ('problem' in outcome) return { violation: patchViolation(index, raw, outcome.problem) };
    current = outcome.document;
  }
  return { document: current };
}

type Outcome = { readonly document: unknown } | { readonly problem: string };

function applyOperation(document: unknown, operation: PatchOperation, budget: PlanBudget): Outcome {
  switch (operation.op) {
    case 'test':
      return applyTest(document, operation, budget);
    case 'add':
      return addAt(document, operation.path, operation.value, budget);
    case 'copy': {
      const source = resolvePointer(document, operation.from ?? [], budget, operation.op);
      if ('problem' in source) return source;
      // Copies of copies can double the document each time. The budget bounds memory as well.
      const copied = budget.copy(source.value);
      return 'problem' in copied
        ? { problem: `the value at ${quoted(operation.from ?? [])} ${copied.problem}` }
        : addAt(document, operation.path, copied.value, budget);
    }
    case 'move': {
      const from = operation.from ?? [];
      const source = resolvePointer(document, from, budget, operation.op);
      if ('problem' in source) return source;
      if (isDeepStrictEqual(from, operation.path)) return { document };
      if (from.every((token, depth) => token === operation.path[depth])) {
        return { problem: `${quoted(from)} cannot be moved into itself` };
      }
      const removed = applyByLibrary(document, { op: 'remove', path: pointer(from) });
      return 'problem' in removed ? removed : addAt(removed.document, operation.path, source.value, budget);
    }
    case 'remove':
    case 'replace': {
      const target = resolvePointer(document, operation.path, budget, operation.op);
      if ('problem' in target) return target;
      if (operation.op === 'replace') {
        return applyByLibrary(document, { op: 'replace', path: pointer(operation.path), value: operation.value });
      }
      if (operation.path.length === 0) return { problem: 'the whole document cannot be removed' };
      return applyByLibrary(document, { op: 'remove', path: pointer(operation.path) });
    }
  }
}

/** Cost of comparing a value, relative to copying it. */
const comparisonFactor = 6;

/** In place of the library's `test`, which accepts any two objects as equal. */
function applyTest(document: unknown, operation: PatchOperation, budget: PlanBudget): Outcome {
  const target = resolvePointer(document, operation.path, budget, operation.op);
  if ('problem' in target) return target;
  const found = budget.copy(target.value);
  if ('problem' in found) return { problem: `the value found ${found.problem}` };
  budget.spend(comparisonFactor * found.weight);
  // By value, as in RFC 6902 section 4.6: without prototypes, and -0 equals 0.
  if (isDeepStrictEqual(comparable(found.value), comparable(operation.value))) return { document };
  // The value found may be a password in env, and readers of the request see the message.
  return {
    problem: `the value found is not ${excerpt(operation.value)}; change the value in the operation, or omit the operation`,
  };
}

/** Checks the parent first, because the library ignores an add below a string or number. */
function addAt(document: unknown, path: readonly string[], value: unknown, budget: PlanBudget): Outcome {
  const token = path.at(-1);
  const parent = resolvePointer(document, path, budget, 'add', path.slice(0, -1));
  if ('problem' in parent) return parent;
  if (token !== undefined) {
    if (Array.isArray(parent.value)) {
      const index = token === '-' ? parent.value.length : arrayIndex(token);
      if (index === undefined || index > parent.value.length) {
        return {
          problem: `${quote(token)} is not an index of a list of ${parent.value.length}; write 0 to ${parent.value.length}, or -`,
        };
      }
    } else if (!isRecord(parent.value)) {
      return {
        problem: `${path.length > 1 ? quoted(path.slice(0, -1)) : 'the document'} is neither an object nor a list; correct the path`,
      };
    }
  }
  return applyByLibrary(document, { op: 'add', path: pointer(path), value });
}

function applyByLibrary(document: unknown, operation: { op: string; path: string; value?: unknown }): Outcome {
  try {
    return { document: jsonpatch.apply_patch(document, [operation]) };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

/** Spends the width of each level on the way to `wanted`, which the library copies. */
function resolvePointer(
  document: unknown,
  path: readonly string[],
  budget: PlanBudget,
  op: PatchOperation['op'],
  wanted = path,
): { readonly value: unknown } | { readonly problem: string } {
  let value = document;
  budget.spend(valueWeight * widthOf(value));
  for (const [depth, token] of wanted.entries()) {
    const index = Array.isArray(value) ? arrayIndex(token) : undefined;
    if (Array.isArray(value) && index !== undefined && index < value.length) value = value[index];
    else if (isRecord(value) && Object.hasOwn(value, token)) value = value[token];
    else {
      const missing = quoted(path.slice(0, depth + 1));
      return { problem: `there is nothing at ${missing}; ${missingRemedy(value, path, depth, op)}` };
    }
    budget.spend(valueWeight * widthOf(value));
  }
  return { value };
}

/** By path: the field of `controllerTargetMutationConfig` that sets this map of the pod. */
const mapFields = new Map([
  ['/metadata/annotations', 'podAnnotations'],
  ['/metadata/labels', 'podLabels'],
  ['/spec/nodeSelector', 'nodeSelector'],
]);

function missingRemedy(parent: unknown, path: readonly string[], depth: number, op: PatchOperation['op']): string {
  if (Array.isArray(parent)) {
    const list = depth > 0 ? quoted(path.slice(0, depth)) : 'the document';
    const named = parent.findIndex((entry) => own(entry, 'name') === path[depth]);
    if (named >= 0) return `${list} is a list: write the index ${named} instead of the name`;
    if (parent.length === 0) return `${list} is an empty list: correct the path`;
    const allowed = parent.length === 1 ? 'the index 0' : `an index from 0 to ${parent.length - 1}`;
    return `${list} is a list of ${parent.length}: write ${allowed}`;
  }
  const map = pointer(path.slice(0, 2));
  const field = mapFields.get(map);
  if (field !== undefined && depth > 0 && (op === 'add' || op === 'replace')) {
    const slash = path.length > 3 ? `write / in a key as ~1, such as ${map}/example.com~1team` : undefined;
    const first = depth === 1 ? `add ${map} first` : undefined;
    const patched = [first, slash].filter((step) => step !== undefined).join(', and ') || 'write op: add';
    return `set spec.controllerTargetMutationConfig.${field} instead, or ${patched}`;
  }
  const correct = 'paths are those of a pod, such as /spec/containers/0/image: correct the path';
  if (depth < path.length - 1) {
    const [spec, template, part] = path;
    if (spec === 'spec' && template === 'template' && (part === 'spec' || part === 'metadata')) {
      return `paths are those of a pod: write ${quoted(path.slice(2))}`;
    }
    const first = op === 'add' ? `, or add ${quoted(path.slice(0, depth + 1))} first` : '';
    return `${correct}${first}`;
  }
  switch (op) {
    case 'replace':
      return 'correct the path, or write op: add, which also sets a field that is missing';
    case 'remove':
    case 'test':
      return 'omit the operation, or correct the path';
    default:
      return 'correct the field from';
  }
}

const widthOf = (value: unknown): number =>
  Array.isArray(value) ? value.length : isRecord(value) ? Object.keys(value).length : 0;

const arrayIndex = (token: string): number | undefined =>
  /^(0|[1-9]\d{0,8})$/.test(token) ? Number(token) : undefined;

const pointer = (tokens: readonly string[]): string =>
  tokens.map((token) => `/${token.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

const quoted = (tokens: readonly string[]): string => quote(pointer(tokens), maxShownPointer);

/** Without prototypes, and with 0 for -0. */
function comparable(value: unknown): unknown {
  if (value === 0) return 0;
  if (Array.isArray(value)) return value.map(comparable);
  if (!isRecord(value)) return value;
  return new Map(Object.keys(value).map((field) => [field, comparable(value[field])]));
}

/** JSON, at most 80 characters. */
function excerpt(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined';
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
