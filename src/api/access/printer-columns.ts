import type { PrinterColumn } from '../schema/kind.ts';

const ready: PrinterColumn = {
  name: 'Ready',
  type: 'boolean',
  jsonPath: '.status.ready',
  description: 'Whether every condition is True.',
};

export const templateColumns: readonly PrinterColumn[] = [ready];

export const requestColumns: readonly PrinterColumn[] = [
  {
    name: 'Template',
    type: 'string',
    jsonPath: '.spec.templateName',
    description: 'The template that access was asked for through.',
  },
  { name: 'Pod', type: 'string', jsonPath: '.status.podName', description: 'The pod that access was granted to.' },
  ready,
];
