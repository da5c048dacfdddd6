import { Type } from 'typebox';
import { opaqueObject, quantity } from '../schema/fields.ts';
import { defineKind, type ObjectOf, readObject } from '../schema/kind.ts';
import type { Read } from '../schema/read.ts';
import { accessConfig } from './access-config.ts';
import { controllerTargetRef } from './controller-target-ref.ts';
import { controllerTargetMutationConfig } from './mutation-config.ts';
import { accessResource } from './names.ts';
import { templateColumns } from './printer-columns.ts';
import { templateStatus } from './status.ts';

export const podAccessTemplates = accessResource('podaccesstemplates', 'PodAccessTemplate');

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
      maxStorage: Type.Optional(quantity('The most ephemeral storage that the access pod may ask for.')),
      maxCpu: Type.Optional(quantity('The most CPU that the access pod may ask for.')),
      maxMemory: Type.Optional(quantity('The most memory that the access pod may ask for.')),
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

export type PodAccessTemplate = ObjectOf<typeof podAccessTemplateKind>;
export type PodAccessTemplateSpec = PodAccessTemplate['spec'];

export function readPodAccessTemplate(object: unknown): Read<PodAccessTemplate> {
  return readObject(podAccessTemplateKind, object);
}
