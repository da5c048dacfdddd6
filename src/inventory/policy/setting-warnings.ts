import type { Mode } from '../../api/inventory/fields.ts';
import { abandonAnnotation, forceAnnotation, maxComponents } from '../../api/inventory/names.ts';
import { isRecord, listIn, own } from '../../kit/json-value.ts';

/** The parts of a registration that decide whether its component runs for an entry. */
export interface RegisteredComponent {
  readonly name: string;
  readonly modes: readonly Mode[];
  readonly selects: (labels: Readonly<Record<string, string>>) => boolean;
}

/**
 * Warnings about what a write adds to `spec.components` and to the force and abandon annotations, at most 64 for each of them: names whose
 * component does not run for the entry, abandonments without a reason, and removed abandonments that stay in force. They are no denials,
 * because a registration may follow later.
 */
export function settingWarnings(
  object: unknown,
  oldObject: unknown,
  registered: readonly RegisteredComponent[],
): string[] {
  const byName = new Map(registered.map((component) => [component.name, component]));
  const names = [...byName.keys()].sort().join(', ') || 'none';
  const problemOf = (name: string): string | undefined => {
    const component = byName.get(name);
    return component
      ? inapplicability(component, object)
      : `no component ${name} is registered; registered: ${names}; correct the name, or register the component`;
  };
  const withoutEffect = (field: string, name: string): string[] => {
    const problem = problemOf(name);
    return problem === undefined ? [] : [`${field} has no effect: ${problem}`];
  };
  const settings = added(recordAt(object, 'spec', 'components'), recordAt(oldObject, 'spec', 'components'));
  const annotations = recordAt(object, 'metadata', 'annotations');
  const annotationsBefore = recordAt(oldObject, 'metadata', 'annotations');
  const named = (keys: readonly string[], annotation: (component: string) => string) =>
    keys.filter((key) => key.startsWith(annotation(''))).slice(0, maxComponents);
  const componentOf = (key: string): string => key.slice(key.indexOf('/') + 1);
  // The server abandons a component without a registration, too, if the entry has it.
  const known = new Set(listIn(own(object, 'status'), 'components').map((status) => own(status, 'name')));
  return [
    ...settings.slice(0, maxComponents).flatMap((name) => withoutEffect(`spec.components.${name}`, name)),
    ...named(added(annotations, annotationsBefore), forceAnnotation).flatMap((key) =>
      withoutEffect(`annotation ${key}`, componentOf(key)),
    ),
    ...named(added(annotations, annotationsBefore), abandonAnnotation).flatMap((key) => [
      ...(known.has(componentOf(key)) || byName.has(componentOf(key))
        ? []
        : withoutEffect(`annotation ${key}`, componentOf(key))),
      ...(isBlank(annotations[key])
        ? [`annotation ${key} has no reason; set one, because the entry and the audit journal show it`]
        : []),
    ]),
    ...(own(own(object, 'metadata'), 'deletionTimestamp') === undefined
      ? []
      : named(added(annotationsBefore, annotations), abandonAnnotation).map(
          (key) =>
            `component ${componentOf(key)} stays abandoned: the entry is being deleted, and the server does not tear down what the component created`,
        )),
  ];
}

/** The keys of `after` that are not in `before`. */
const added = (after: Readonly<Record<string, unknown>>, before: Readonly<Record<string, unknown>>): string[] =>
  Object.keys(after).filter((key) => !Object.hasOwn(before, key));

const isBlank = (reason: unknown): boolean => typeof reason !== 'string' || reason.trim() === '';

/** Why a registered component does not run for an entry, and what to do; undefined if it does run. */
function inapplicability({ name, modes, selects }: RegisteredComponent, entry: unknown): string | undefined {
  const mode = own(own(entry, 'spec'), 'mode');
  if (!modes.some((candidate) => candidate === mode)) {
    return `component ${name} does not run in mode ${mode}; it runs in ${modes.join(', ')}; remove this setting`;
  }
  // The API server admits only texts as labels.
  const labels = recordAt(entry, 'metadata', 'labels') as Readonly<Record<string, string>>;
  if (selects(labels)) return undefined;
  const command = `kubectl get componentreconciler ${name} -o jsonpath='{.spec.selector}'`;
  return `the selector of component ${name} does not match the labels of the entry; label the entry as it says (${command}), or remove this setting`;
}

function recordAt(object: unknown, part: 'spec' | 'metadata', field: string): Readonly<Record<string, unknown>> {
  const found = own(own(object, part), field);
  return isRecord(found) ? found : {};
}
