import { type Static, Type } from 'typebox';
import { listOf, objectName, opaqueObject, quantity } from '../schema/fields.ts';
import { defineKind, type ObjectOf } from '../schema/kind.ts';
import { controllerTargetMutationConfig } from './mutation-config.ts';
import { accessResource } from './names.ts';
import { requestSpec, specIsFinal } from './request-spec.ts';
import { grantIsFinal, requestColumns, requestStatus, templateColumns, templateStatus } from './status.ts';
import { accessConfig, author, controllerTargetRef } from './template-spec.ts';

export const podAccessTemplates = accessResource('podaccesstemplates', 'PodAccessTemplate');

const selectorReference = Type.Object({
  kind: Type.Union([Type.Literal('Service'), Type.Literal('PodDisruptionBudget'), Type.Literal('NetworkPolicy')], {
    description: 'The kind of the object.',
  }),
  name: objectName('Its name.'),
});

export type SelectorReference = Static<typeof selectorReference>;

export const podAccessTemplateKind = defineKind({
  resource: podAccessTemplates,
  description:
    'A PodAccessTemplate lets the members of some groups ask for a pod of their own, made after a workload, for a while.',
  spec: Type.Object(
    {
      accessConfig,
      controllerTargetRef: Type.Optional(controllerTargetRef),
      controllerTargetMutationConfig: Type.Optional(controllerTargetMutationConfig),
      podSpec: Type.Optional(
        opaqueObject('The spec of the access pod, when there is no controllerTargetRef. A PodSpec as in a Pod.'),
      ),
      allowPrivilegedPod: Type.Optional(
        Type.Boolean({
          description:
            'Lets the access pod be privileged, use namespaces, paths and ports of its node, run under another ServiceAccount or on a certain node. Only for who may allow-privileged this template; what goes beyond the baseline level of Pod Security also takes the label access.drawbridge.dev/allow-privileged on the namespace.',
        }),
      ),
      allowedSelectors: Type.Optional(
        listOf(selectorReference, 64, {
          description:
            'Objects of the namespace that may select the access pod by its labels. All others must not: a Service would send it traffic.',
        }),
      ),
      maxStorage: Type.Optional(quantity('The most ephemeral storage that the access pod may ask for.')),
      maxCpu: Type.Optional(quantity('The most CPU that the access pod may ask for.')),
      maxMemory: Type.Optional(quantity('The most memory that the access pod may ask for.')),
      author: Type.Optional(author),
    },
    {
      description: 'What access is given, to whom and for how long.',
      'x-kubernetes-validations': [
        {
          rule: 'has(self.controllerTargetRef) || has(self.podSpec)',
          message: 'needs controllerTargetRef, to copy the pods of a workload, or podSpec, to write the pod out',
          reason: 'FieldValueRequired',
        },
      ],
    },
  ),
  status: templateStatus,
  printerColumns: templateColumns,
});

export type PodAccessTemplateSpec = ObjectOf<typeof podAccessTemplateKind>['spec'];

export const podAccessRequests = accessResource('podaccessrequests', 'PodAccessRequest');

export const podAccessRequestKind = defineKind({
  resource: podAccessRequests,
  description:
    'A PodAccessRequest asks for a pod of one’s own through a PodAccessTemplate. Deleting or revoking it gives the access back at once.',
  spec: Type.Object(requestSpec, {
    description: 'What is asked for. It cannot be changed later, only revoked.',
    'x-kubernetes-validations': specIsFinal(requestSpec),
  }),
  status: requestStatus,
  rules: [grantIsFinal],
  printerColumns: requestColumns,
});

/** Access to a pod of one's own, made after a workload or written out in the template. */
export const podAccess = {
  request: podAccessRequestKind,
  template: podAccessTemplateKind,
  createsPod: true,
} as const;
