import { quote } from '../../kit/errors.ts';
import { own } from '../../kit/json-value.ts';

/** `field`: by name, or an element of an array by index. `every`: all elements. */
type PathStep = { readonly kind: 'field'; readonly field: string } | { readonly kind: 'every' };

export type ReferencePath = readonly PathStep[];

export interface Reference {
  readonly name: string;
  readonly namespace: string | undefined;
}

const MAX_LENGTH = 512;
const INDEX = /^(0|[1-9]\d*)$/;

/**
 * Parses the paths of gjson that name fields, such as `spec.refs.#.name`: `#` is each element, a
 * number one of them, `\.` a dot in a name. Rejects the rest, so that no path is misread.
 */
export function parseReferencePath(text: string): ReferencePath | { readonly problem: string } {
  const rejected = (why: string) => ({
    problem: `the path ${quote(text)} ${why}; allowed are names joined by dots, # for every element of a list, numbers, and \\. for a dot within a name`,
  });
  if (text.length > MAX_LENGTH) return rejected(`is longer than ${MAX_LENGTH} characters`);
  const steps: PathStep[] = [];
  let field = '';
  let escaped = false;
  for (let i = 0; i <= text.length; i++) {
    const character = text[i];
    if (character === '.' || character === undefined) {
      if (field === '') return rejected(text === '' ? 'is empty' : 'has an empty part');
      steps.push(field === '#' && !escaped ? { kind: 'every' } : { kind: 'field', field });
      field = '';
      escaped = false;
    } else if (character === '\\') {
      i++;
      if (text[i] === undefined) return rejected('ends within an escape');
      field += text[i];
      escaped = true;
    } else if (isSpecial(character, field === '')) {
      return rejected(`has the unsupported ${quote(character)}`);
    } else if (field === '#' && !escaped) {
      return rejected('has more than a # in one part');
    } else field += character;
  }
  // In gjson a final # is the length of the list.
  return steps.at(-1)?.kind === 'every' ? rejected('ends with #, which is no name') : steps;
}

/** Whether the character is special in gjson or JSONPath. */
const isSpecial = (character: string, isFirst: boolean): boolean =>
  '*?|[](){}"'.includes(character) || (isFirst && '@!$'.includes(character));

/**
 * Both paths run together through shared lists, so that a name pairs with the namespace of its
 * element. Names with several namespaces are no references.
 */
export function referencesIn(object: unknown, name: ReferencePath, namespace?: ReferencePath): Reference[] {
  if (!namespace) return textsAt(object, name).map((text) => ({ name: text, namespace: undefined }));
  const [nameStep, ...restOfName] = name;
  const [namespaceStep, ...restOfNamespace] = namespace;
  if (nameStep && namespaceStep && isSame(nameStep, namespaceStep)) {
    return childrenOf(object, nameStep).flatMap((child) => referencesIn(child, restOfName, restOfNamespace));
  }
  const namespaces = new Set(textsAt(object, namespace));
  if (namespaces.size > 1) return [];
  const [onlyNamespace] = namespaces;
  return textsAt(object, name).map((text) => ({ name: text, namespace: onlyNamespace }));
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
