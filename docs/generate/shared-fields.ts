import type { Kind } from '../../src/api/schema/kind.ts';
import type { StructuralSchema } from '../../src/api/schema/structural-schema.ts';

/** A field at `path`, such as `spec.rules`, of a kind or of a shared type. */
export interface Field {
  readonly path: string;
  readonly schema: StructuralSchema;
  readonly isRequired: boolean;
}

/** An object that several fields of a page are, or have as items or values, such as a condition. */
export interface SharedType {
  readonly title: string;
  /** Where it is used, such as `status.conditions[]`. */
  readonly paths: readonly string[];
  readonly object: StructuralSchema;
}

/** A smaller type stays where it is used: a link would be as long. */
const leastFields = 3;

/** The fields of an object, of the items of a list, or of the values of a map. */
export function fieldsBelow(field: Pick<Field, 'path' | 'schema'>): Field[] {
  const { path: outer, schema: object } = objectAt(field);
  return Object.entries(object.properties ?? {}).map(([name, field]) => ({
    path: outer === '' ? name : `${outer}.${name}`,
    schema: field,
    isRequired: object.required?.includes(name) ?? false,
  }));
}

/** Conditions of Kubernetes, whose fields readers know, and not those of kube-bind. */
export const isConditions = (schema: StructuralSchema): boolean => schema['x-kubernetes-list-map-keys']?.[0] === 'type';

/** `spec` and `status` without their fields, and each of these fields. */
export function fieldsOfKind({ structural, specOptional }: Kind): Field[] {
  return (['spec', 'status'] as const).flatMap((path) => {
    const schema = structural[path];
    const { properties, required, 'x-kubernetes-validations': rules, ...itself } = schema;
    const isRequired = path === 'spec' && !specOptional;
    return [{ path, schema: itself, isRequired }, ...fieldsBelow({ path, schema })];
  });
}

/** Puts kinds together of which one has most of its fields in common with the first. */
export function familiesOf(kinds: readonly Kind[]): Kind[][] {
  const families: [Kind, ...Kind[]][] = [];
  for (const kind of kinds) {
    const own = fieldsOfKind(kind);
    const family = families.find(([first]) => {
      const others = fieldsOfKind(first);
      return common([own, others], textOf).length > Math.min(own.length, others.length) / 2;
    });
    if (family) family.push(kind);
    else families.push([kind]);
  }
  return families;
}

/** What is in all `lists`, in the order of the first. */
export function common<Item>(lists: readonly (readonly Item[])[], key: (item: Item) => string): Item[] {
  const [first = [], ...others] = lists.map((list) => new Map(list.map((item) => [key(item), item])));
  return [...first].filter(([text]) => others.every((other) => other.has(text))).map(([, item]) => item);
}

/** Equal for equal fields. */
export const textOf = ({ path, schema, isRequired }: Field): string => JSON.stringify([path, schema, isRequired]);

/** The objects that occur more than once below `fields`, by `typeKey`. */
export function sharedTypes(fields: readonly Field[]): ReadonlyMap<string, SharedType> {
  const found = new Map<string, { object: StructuralSchema; paths: string[] }>();
  // What is below a type counts once, because it is printed once.
  const visit = (field: Field): void => {
    const { path, schema: object } = objectAt(field);
    const known = found.get(typeKey(field));
    if (known) known.paths.push(path);
    else {
      found.set(typeKey(field), { object, paths: [path] });
      fieldsBelow(field).forEach(visit);
    }
  };
  fields.forEach(visit);
  const shared = [...found].filter(
    ([, { object, paths }]) => paths.length > 1 && Object.keys(object.properties ?? {}).length >= leastFields,
  );
  return new Map(shared.map(([key, { object, paths }]) => [key, { ...named(paths), object }]));
}

/** Equal for fields that have equal objects with equal rules. Their descriptions may differ. */
export function typeKey(field: Pick<Field, 'path' | 'schema'>): string {
  const { properties, required, 'x-kubernetes-validations': rules } = objectAt(field).schema;
  return JSON.stringify([properties, required, rules]);
}

function named(paths: readonly string[]): Pick<SharedType, 'title' | 'paths'> {
  const names = paths.map((path) => path.replace(/(\[\]|\.\*)+$/, '').replace(/^.*\./, ''));
  return { title: [...new Set(names)].join(' and '), paths: [...new Set(paths)] };
}

/** The field itself, or the items of its list or the values of its map. */
function objectAt({ path, schema }: Pick<Field, 'path' | 'schema'>): Pick<Field, 'path' | 'schema'> {
  if (isConditions(schema)) return { path, schema };
  if (schema.items) return objectAt({ path: `${path}[]`, schema: schema.items });
  if (schema.additionalProperties) return objectAt({ path: `${path}.*`, schema: schema.additionalProperties });
  return { path, schema };
}
