import { Type } from 'typebox';
import { defineKind, type ObjectOf, readObject } from '../schema/kind.ts';
import type { Read } from '../schema/read.ts';
import { accessConfig } from './access-config.ts';
import { author } from './author.ts';
import { controllerTargetRef } from './controller-target-ref.ts';
import { accessResource } from './names.ts';
import { templateColumns } from './printer-columns.ts';
import { templateStatus } from './status.ts';

export const execAccessTemplates = accessResource('execaccesstemplates', 'ExecAccessTemplate');

export const execAccessTemplateKind = defineKind({
  resource: execAccessTemplates,
  description:
    'An ExecAccessTemplate lets the members of some groups ask for a shell in a running pod of a workload, for a while.',
  spec: Type.Object(
    { accessConfig, controllerTargetRef, author: Type.Optional(author) },
    { description: 'What access is given, to whom and for how long.' },
  ),
  status: templateStatus,
  printerColumns: templateColumns,
});

export type ExecAccessTemplate = ObjectOf<typeof execAccessTemplateKind>;
export type ExecAccessTemplateSpec = ExecAccessTemplate['spec'];

export function readExecAccessTemplate(object: unknown): Read<ExecAccessTemplate> {
  return readObject(execAccessTemplateKind, object);
}
