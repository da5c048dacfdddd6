import { Type } from 'typebox';
import { maxConditionMessage } from '../conditions.ts';
import { time } from './fields.ts';

const condition = Type.Object({
  type: Type.String({ description: 'What the condition is about.', minLength: 1, maxLength: 316 }),
  status: Type.Union([Type.Literal('True'), Type.Literal('False'), Type.Literal('Unknown')], {
    description: 'Whether it holds.',
  }),
  reason: Type.String({
    description: 'Why, as one word in UpperCamelCase for programs.',
    minLength: 1,
    maxLength: 1024,
    pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
  }),
  message: Type.String({ description: 'Why, for people.', maxLength: maxConditionMessage }),
  lastTransitionTime: time('When the status last changed.'),
  observedGeneration: Type.Optional(
    Type.Integer({ description: 'The metadata.generation that this was found for.', minimum: 0, format: 'int64' }),
  ),
});

/** status.conditions: a list of metav1.Condition with one entry a type. */
export const conditions = Type.Array(condition, {
  description: 'What has been found out about this object, one entry a type.',
  maxItems: 32,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
});
