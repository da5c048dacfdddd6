import { type Static, Type } from 'typebox';
import { listOf, objectName, oneOf, opaqueObject, quantity } from '../schema/fields.ts';
import { defineKind, type ObjectOf } from '../schema/kind.ts';
import { endIsFinal } from './ended.ts';
import { controllerTargetMutationConfig } from './mutation-config.ts';
import { accessCategory, accessResource } from './names.ts';
import { requestSpec, specIsFinal } from './request-spec.ts';
import { grantIsFinal, requestColumns, requestStatus, templateColumns, templateStatus } from './status.ts';
import { accessConfig, author, controllerTargetRef } from './template-spec.ts';

export const podAccessTemplates = accessResource('podaccesstemplates', 'PodAccessTemplate');

const selectorReference = Type.Object({
  kind: oneOf(['Service', 'PodDisruptionBudget', 'NetworkPolicy'], {
    description: 'The kind of the object.',
  }),
  name: objectName('The name of the object.'),
});

/** An object that may select the access pod by its labels. */
export type SelectorReference = Static<typeof selectorReference>;

export const podAccessTemplateKind = defineKind({
  resource: podAccessTemplates,
  description:
    'A PodAccessTemplate allows members of some groups to request a dedicated pod, copied from a workload or defined by podSpec, for a limited time.',
  spec: Type.Object(
    {
      accessConfig,
      controllerTargetRef: Type.Optional(controllerTargetRef),
      controllerTargetMutationConfig: Type.Optional(controllerTargetMutationConfig),
      podSpec: Type.Optional(opaqueObject('The spec of the access pod, as in a Pod, if controllerTargetRef is unset.')),
      allowPrivilegedPod: Type.Optional(
        Type.Boolean({
          description:
            'Lets the access pod be privileged, use namespaces, paths, and ports of its node, and choose its ServiceAccount and node. The author needs the verb allow-privileged on this template; beyond the baseline level of Pod Security, the namespace needs the label access.drawbridge.dev/allow-privileged.',
        }),
      ),
      allowedSelectors: Type.Optional(
        listOf(selectorReference, 64, {
          description:
            'Objects of the namespace that may select the access pod. drawbridge denies a request if an unlisted Service, PodDisruptionBudget, or NetworkPolicy for other pods would select the pod by labels that this template sets.',
        }),
      ),
      maxStorage: Type.Optional(
        quantity('The cap on the ephemeral storage of each container, such as 10Gi. If unset, there is none.'),
      ),
      maxCpu: Type.Optional(
        quantity('The cap on the CPU of each container, such as 500m or 2. If unset, there is none.'),
      ),
      maxMemory: Type.Optional(
        quantity('The cap on the memory of each container, such as 2Gi. If unset, there is none.'),
      ),
      author: Type.Optional(author),
    },
    {
      description: 'What the template gives access to, and how.',
      'x-kubernetes-validations': [
        {
          rule: 'has(self.controllerTargetRef) || has(self.podSpec)',
          message:
            'has no target; set controllerTargetRef to copy the pods of a workload, or podSpec to define the pod',
          reason: 'FieldValueRequired',
        },
      ],
    },
  ),
  status: templateStatus,
  printerColumns: templateColumns,
  shortNames: ['pat'],
});

export type PodAccessTemplateSpec = ObjectOf<typeof podAccessTemplateKind>['spec'];

/** Requests for a dedicated pod. */
export const podAccessRequests = accessResource('podaccessrequests', 'PodAccessRequest');

export const podAccessRequestKind = defineKind({
  resource: podAccessRequests,
  description:
    'A PodAccessRequest asks for a dedicated pod through a PodAccessTemplate. Deleting or revoking it ends access at once.',
  spec: Type.Object(requestSpec, {
    description: 'Immutable, except that the requester can claim and extend access, and that revoked can become true.',
    'x-kubernetes-validations': specIsFinal(requestSpec),
  }),
  status: requestStatus,
  rules: [grantIsFinal, endIsFinal],
  printerColumns: requestColumns,
  shortNames: ['par'],
  categories: [accessCategory],
});

/** A dedicated pod, copied from a workload or defined in the template. */
export const podAccess = {
  request: podAccessRequestKind,
  template: podAccessTemplateKind,
  createsPod: true,
} as const;
