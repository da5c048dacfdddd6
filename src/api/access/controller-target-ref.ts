import { type Static, Type } from 'typebox';
import { objectName } from '../schema/fields.ts';

/** The workload, always in the template's own namespace, whose pods a template gives access to. */
export const controllerTargetRef = Type.Object(
  {
    apiVersion: Type.Union([Type.Literal('apps/v1'), Type.Literal('argoproj.io/v1alpha1')], {
      description: 'The API of the workload: apps/v1, or argoproj.io/v1alpha1 for a Rollout.',
    }),
    kind: Type.Union(
      [Type.Literal('Deployment'), Type.Literal('DaemonSet'), Type.Literal('StatefulSet'), Type.Literal('Rollout')],
      { description: 'The kind of the workload.' },
    ),
    name: objectName('The name of the workload. It is looked for in the namespace of this template.'),
  },
  {
    description: 'The workload whose pods this template gives access to.',
    'x-kubernetes-validations': [
      {
        rule: "(self.kind == 'Rollout') == (self.apiVersion == 'argoproj.io/v1alpha1')",
        message: 'a Rollout is argoproj.io/v1alpha1; a Deployment, DaemonSet or StatefulSet is apps/v1',
      },
    ],
  },
);

export type ControllerTargetRef = Static<typeof controllerTargetRef>;
