import type { Mode } from '../../api/inventory/fields.ts';
import { abandonAnnotation, forceAnnotation, maxComponents } from '../../api/inventory/names.ts';
import { type JsonPointer, overlap, pointerOf } from '../../kit/json-pointer.ts';
import { isRecord, listIn, own } from '../../kit/json-value.ts';

/** What decides whether a component runs for an entry, and which fields it reads. */
export interface RegisteredComponent {
  readonly name: string;
  readonly modes: readonly Mode[];
  readonly selects: (labels: Readonly<Record<string, string>>) => boolean;
  readonly reads: readonly JsonPointer[];
}

/**
 * Warnings, at most 64 of a kind, about `spec.components` and the force and abandon annotations:
 * names and fields without effect, abandonments without a reason, and removed ones that stay in
 * force. Not denied, because the registration may come later.
 */
export function settingWarnings(
  object: unknown,
  oldObject: unknown,
  registered: readonly RegisteredComponent[],
): string[] {
  const byName = new Map(registered.map((component) => [component.name, component]));
  const registeredNames = [...byName.keys()].sort().join(', ') || 'none';
  const withoutEffect = (field: string, name: string): string[] => {
    const component = byName.get(name);
    const problem = component
      ? inapplicability(component, object)
      : `no component ${name} is registered; registered: ${registeredNames}; correct the name, or register the component`;
    return problem === undefined ? [] : [`${field} has no effect: ${problem}`];
  };
  const annotations = recordAt(object, 'metadata', 'annotations');
  const annotationsBefore = recordAt(oldObject, 'metadata', 'annotations');
  const addedAnnotations = addedKeys(annotations, annotationsBefore);
  const removedAnnotations = addedKeys(annotationsBefore, annotations);
  const isDeleting = own(own(object, 'metadata'), 'deletionTimestamp') !== undefined;
  // A component in the status can be abandoned without a registration.
  const inStatus = new Set(listIn(own(object, 'status'), 'components').map((status) => own(status, 'name')));

  const components = recordAt(object, 'spec', 'components');
  const componentsBefore = recordAt(oldObject, 'spec', 'components');
  const settings = addedKeys(components, componentsBefore)
    .slice(0, maxComponents)
    .flatMap((name) => withoutEffect(`spec.components.${name}`, name));
  // The API server keeps fields that the schema lacks, because components may define them.
  const isRead = (path: JsonPointer): boolean =>
    registered.some(({ reads }) => reads.some((read) => overlap(read, path)));
  const ignored = Object.keys(components)
    .flatMap((name) =>
      addedKeys(recordOf(components[name]), recordOf(own(componentsBefore, name)))
        .filter((field) => !settingFields.includes(field) && !isRead(pointerOf('spec', 'components', name, field)))
        .map(
          (field) =>
            `spec.components.${name}.${field} is ignored: the fields are ${settingFields.join(' and ')}, and no registration has this one in its reads; correct the name, or move the field to spec.components.${name}.config`,
        ),
    )
    .slice(0, maxComponents);
  const forced = annotationsOf(addedAnnotations, forceAnnotation).flatMap(({ key, component }) =>
    withoutEffect(`annotation ${key}`, component),
  );
  const abandoned = annotationsOf(addedAnnotations, abandonAnnotation).flatMap(({ key, component }) => {
    if (!inStatus.has(component) && !byName.has(component)) return withoutEffect(`annotation ${key}`, component);
    if (!isBlank(annotations[key])) return [];
    return [
      `annotation ${key} abandons the component although it has no reason; set one, so that the entry and the audit journal show why`,
    ];
  });
  const withdrawn = isDeleting ? annotationsOf(removedAnnotations, abandonAnnotation) : [];
  const stillAbandoned = withdrawn.map(
    ({ component }) =>
      `component ${component} stays abandoned: the entry is being deleted, and the server does not tear down what the component created`,
  );
  return [...settings, ...ignored, ...forced, ...abandoned, ...stillAbandoned];
}

/** In `spec.components.NAME`. */
const settingFields: readonly string[] = ['config', 'enabled'];

/** The keys of a kind of annotation, at most 64, with their components. */
function annotationsOf(keys: readonly string[], annotation: (component: string) => string) {
  const prefix = annotation('');
  return keys
    .filter((key) => key.startsWith(prefix))
    .slice(0, maxComponents)
    .map((key) => ({ key, component: key.slice(prefix.length) }));
}

const addedKeys = (after: Readonly<Record<string, unknown>>, before: Readonly<Record<string, unknown>>): string[] =>
  Object.keys(after).filter((key) => !Object.hasOwn(before, key));

const isBlank = (reason: unknown): boolean => typeof reason !== 'string' || reason.trim() === '';

/** Why a component does not apply to an entry, and what to do. */
function inapplicability({ name, modes, selects }: RegisteredComponent, entry: unknown): string | undefined {
  const mode = own(own(entry, 'spec'), 'mode');
  if (!modes.some((candidate) => candidate === mode)) {
    return `component ${name} does not run in mode ${mode}; it runs in ${modes.join(', ')}; remove this setting`;
  }
  // The API server admits only texts as labels.
  const labels = recordAt(entry, 'metadata', 'labels') as Readonly<Record<string, string>>;
  if (selects(labels)) return undefined;
  const command = `kubectl get componentreconciler ${name} -o jsonpath='{.spec.selector}'`;
  return `the selector of component ${name} does not match the labels of the entry; label the entry as the selector requires (${command}), or remove this setting`;
}

function recordAt(object: unknown, part: 'spec' | 'metadata', field: string): Readonly<Record<string, unknown>> {
  return recordOf(own(own(object, part), field));
}

const recordOf = (value: unknown): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {});
