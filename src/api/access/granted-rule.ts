import { type Static, Type } from 'typebox';
import { listOf } from '../schema/fields.ts';

const words = (maxItems: number, description: string) =>
  listOf(Type.String({ maxLength: 128 }), maxItems, { description, minItems: 1 });

const rule = {
  apiGroups: words(2, 'The API groups; pods are in the core group, which is the empty string.'),
  resources: words(4, 'pods, or a subresource of it such as pods/log.'),
  verbs: words(8, 'The verbs, such as get or create.'),
};

/** A rule that a template adds; the grant confines it to its pod. */
export const templateRule = Type.Object(rule, { description: 'Rights on the pod, as in a Role.' });

/** A rule as the Role of a grant has it. */
export const grantedRule = Type.Object(
  {
    ...rule,
    resourceNames: Type.Unsafe<[string, ...string[]]>(
      listOf(Type.String({ maxLength: 253 }), 1, { description: 'The pod.', minItems: 1 }),
    ),
  },
  { description: 'One rule of the Role.' },
);

export type TemplateRule = Static<typeof templateRule>;
export type GrantedRule = Static<typeof grantedRule>;
