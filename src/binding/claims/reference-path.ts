import { quote } from '../../kit/errors.ts';
import { own } from '../../kit/json-value.ts';

/** A field by its name, an element of an array by its index, or all elements of an array. */
type PathStep = { readonly kind: 'field'; readonly field: string } | { readonly kind: 'every' };

export type ReferencePath = readonly PathStep[];

export interface Reference {
  readonly name: string;
  /** Undefined when the referring object does not say. */
  readonly namespace: string | undefined;
}

const MAX_LENGTH = 512;
const INDEX = /^(0|[1-9]\d*)$/;

/**
 * The part of gjson's path syntax that names fields: `spec.refs.#.name`, where `#` stands for each element, a number for one of
 * them, and `\.` for a dot within a name. What gjson would take for something else (globs, queries, modifiers) is a problem in
 * one clause, so that a path never quietly means less than its author thinks.
 */
export function parseReferencePath(text: string): ReferencePath | { readonly problem: string } {
  const refused = (why: string) => ({
    problem: `the path ${quote(text)} ${why}: allowed are names joined by dots, # for every element of a list, numbers, and \\. for a dot within a name`,
  });
  if (text.length > MAX_LENGTH) return refused(`is longer than ${MAX_LENGTH} characters`);
  const steps: PathStep[] = [];
  let field = '';
  let escaped = false;
  for (let i = 0; i <= text.length; i++) {
    const character = text[i];
    if (character === '.' || character === undefined) {
      if (field === '') return refused(text === '' ? 'is empty' : 'has an empty part');
      steps.push(field === '#' && !escaped ? { kind: 'every' } : { kind: 'field', field });
      field = '';
      escaped = false;
    } else if (character === '\\') {
      i++;
      if (text[i] === undefined) return refused('ends within an escape');
      field += text[i];
      escaped = true;
    } else if (means(character, field === '')) {
      return refused(`has the unsupported ${quote(character)}`);
    } else if (field === '#' && !escaped) {
      return refused('has more than a # in one part');
    } else field += character;
  }
  // gjson gives the length of the list.
  return steps.at(-1)?.kind === 'every' ? refused('ends with #, which is no name') : steps;
}

/** Whether gjson, or a person who thinks of JSONPath, means more by it than the character. */
const means = (character: string, isFirst: boolean): boolean =>
  '*?|[](){}"'.includes(character) || (isFirst && '@!$'.includes(character));

/**
 * What `object` refers to, the name under one path and the namespace under the other. Both are followed together through the
 * lists they share, so that an element's name only ever meets its own namespace; where they part and several namespaces are
 * left, nobody can tell which is meant, and nothing is.
 */
export function referencesIn(object: unknown, name: ReferencePath, namespace?: ReferencePath): Reference[] {
  if (!namespace) return textsAt(object, name).map((found) => ({ name: found, namespace: undefined }));
  const [first, ...names] = name;
  const [other, ...namespaces] = namespace;
  if (first && other && isSame(first, other)) {
    return childrenOf(object, first).flatMap((child) => referencesIn(child, names, namespaces));
  }
  const found = new Set(textsAt(object, namespace));
  if (found.size > 1) return [];
  const [only] = found;
  return textsAt(object, name).map((each) => ({ name: each, namespace: only }));
}

const isSame = (a: PathStep, b: PathStep): boolean =>
  a.kind === 'every' ? b.kind === 'every' : b.kind === 'field' && a.field === b.field;

function childrenOf(value: unknown, step: PathStep): readonly unknown[] {
  if (step.kind === 'every') return Array.isArray(value) ? value : [];
  if (Array.isArray(value))
    return INDEX.test(step.field) ? value.slice(Number(step.field), Number(step.field) + 1) : [];
  const child = own(value, step.field);
  return child === undefined ? [] : [child];
}

function textsAt(value: unknown, [step, ...rest]: ReferencePath): string[] {
  if (step) return childrenOf(value, step).flatMap((child) => textsAt(child, rest));
  if (Array.isArray(value)) return value.flatMap((element) => textsAt(element, []));
  const text = typeof value === 'string' ? value.trim() : '';
  return text === '' ? [] : [text];
}
