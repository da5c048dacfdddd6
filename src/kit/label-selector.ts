import { quote } from './errors.ts';

/** metav1.LabelSelector; compiling it validates its content. */
export interface SelectorShape {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

/** Whichever field states it. */
interface Requirement {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values: ReadonlySet<string>;
}

type Requirements = { readonly requirements: readonly Requirement[] } | { readonly error: string };

const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const;
const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const PREFIX = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

export type CompiledSelector =
  | { readonly matches: (labels: Readonly<Record<string, string>> | undefined) => boolean }
  | { readonly error: string };

/** An absent selector matches nothing, an empty one everything. Errors are as in Kubernetes. */
export function compileSelector(selector: SelectorShape | undefined): CompiledSelector {
  if (selector === undefined || selector === null) return { matches: () => false };
  const parsed = requirementsOf(selector);
  if ('error' in parsed) return parsed;
  return { matches: (labels) => parsed.requirements.every((requirement) => isMet(requirement, labels ?? {})) };
}

/** For the `labelSelector` query of a list or watch; '' for the empty selector. */
export function formatSelector(selector: SelectorShape): { readonly text: string } | { readonly error: string } {
  const parsed = requirementsOf(selector);
  return 'error' in parsed ? parsed : { text: parsed.requirements.map(formatRequirement).join(',') };
}

function isMet({ key, operator, values }: Requirement, labels: Readonly<Record<string, string>>): boolean {
  // Own properties only: `constructor` is a legal label key.
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case 'In':
      return value !== undefined && values.has(value);
    case 'NotIn':
      return value === undefined || !values.has(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
  }
}

function formatRequirement({ key, operator, values }: Requirement): string {
  const list = [...values].sort();
  switch (operator) {
    case 'In':
      return list.length === 1 ? `${key}=${list[0]}` : `${key} in (${list.join(',')})`;
    case 'NotIn':
      return `${key} notin (${list.join(',')})`;
    case 'Exists':
      return key;
    case 'DoesNotExist':
      return `!${key}`;
  }
}

function requirementsOf(selector: SelectorShape): Requirements {
  const requirements: Requirement[] = [];
  const { matchLabels = {}, matchExpressions = [] } = selector;
  if (!isPlain(matchLabels)) return { error: 'matchLabels must be a map of label keys to values' };
  if (!Array.isArray(matchExpressions)) return { error: 'matchExpressions must be a list' };
  for (const [key, value] of Object.entries(matchLabels).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const requirement = requirementOf(`matchLabels[${quote(key)}]`, key, 'In', [value]);
    if ('error' in requirement) return requirement;
    requirements.push(requirement);
  }
  for (const [i, expression] of matchExpressions.entries()) {
    const where = `matchExpressions[${i}]`;
    if (!isPlain(expression)) return { error: `${where} must be an object with key, operator, and values` };
    const { key, operator, values } = expression;
    const requirement = requirementOf(where, key, operator, values ?? []);
    if ('error' in requirement) return requirement;
    requirements.push(requirement);
  }
  return { requirements };
}

function requirementOf(
  where: string,
  key: unknown,
  operatorName: unknown,
  values: unknown,
): Requirement | { readonly error: string } {
  if (!isLabelKey(key)) {
    return {
      error: `${where}: ${describeValue(key)} is not a label key; allowed is [prefix/]name, for example app.kubernetes.io/name`,
    };
  }
  const operator = OPERATORS.find((name) => name === operatorName);
  if (!operator)
    return {
      error: `${where}: operator ${describeValue(operatorName)} is unknown; allowed are ${OPERATORS.join(', ')}`,
    };
  if (!Array.isArray(values)) return { error: `${where}: values must be a list of strings` };
  const invalidValue = values.find((value) => !isLabelValue(value));
  if (values.length > 0 && values.some((value) => !isLabelValue(value))) {
    return {
      error: `${where}: ${describeValue(invalidValue)} is not a label value; allowed is an empty text, or 1 to 63 letters, digits, -, _, and ., the first and last a letter or digit`,
    };
  }
  const wantsValues = operator === 'In' || operator === 'NotIn';
  if (wantsValues !== values.length > 0) {
    return { error: `${where}: operator ${operator} takes ${wantsValues ? 'at least one value' : 'no values'}` };
  }
  return { key, operator, values: new Set(values) };
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isLabelKey(key: unknown): key is string {
  if (typeof key !== 'string' || key.length > 317) return false;
  const slash = key.indexOf('/');
  if (slash < 0) return NAME.test(key);
  const prefix = key.slice(0, slash);
  return prefix.length <= 253 && PREFIX.test(prefix) && NAME.test(key.slice(slash + 1));
}

function isLabelValue(value: unknown): value is string {
  return typeof value === 'string' && (value === '' || NAME.test(value));
}

function describeValue(value: unknown): string {
  return typeof value === 'string' ? quote(value) : `a value of type ${typeof value}`;
}
