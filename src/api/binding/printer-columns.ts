import type { PrinterColumn } from '../schema/kind.ts';

const ready: PrinterColumn = {
  name: 'Ready',
  type: 'string',
  jsonPath: '.status.conditions[?(@.type=="Ready")].status',
  description: 'Whether all is well.',
};

const age: PrinterColumn = {
  name: 'Age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description: 'When it was created.',
};

/** Of bindings and bundles alike. */
export const bindingColumns: readonly PrinterColumn[] = [
  {
    name: 'Provider',
    type: 'string',
    jsonPath: '.status.providerPrettyName',
    description: 'What the provider calls itself.',
  },
  {
    name: 'Resources',
    type: 'string',
    jsonPath: '.metadata.annotations.kube-bind\\.io/resources',
    description: 'What is bound, as whoever made the binding describes it.',
    priority: 1,
  },
  ready,
  {
    name: 'Message',
    type: 'string',
    jsonPath: '.status.conditions[?(@.type=="Ready")].message',
    description: 'Why it is not ready.',
  },
  age,
];

export const exportColumns: readonly PrinterColumn[] = [
  {
    name: 'Established',
    type: 'string',
    jsonPath: '.status.conditions[?(@.type=="Established")].status',
    description: 'Whether the resources are installed in the consumer.',
    priority: 5,
  },
  age,
];

export const exportRequestColumns: readonly PrinterColumn[] = [ready, age];

export const serviceNamespaceColumns: readonly PrinterColumn[] = [
  {
    name: 'Namespace',
    type: 'string',
    jsonPath: '.status.namespace',
    description: 'The namespace of the provider that stands for it.',
  },
  age,
];

export const boundSchemaColumns: readonly PrinterColumn[] = [ready, age];

export const clusterBindingColumns: readonly PrinterColumn[] = [
  {
    name: 'Konnector Version',
    type: 'string',
    jsonPath: '.status.konnectorVersion',
    description: 'The version of the konnector in the consumer.',
  },
  {
    name: 'Last Heartbeat',
    type: 'date',
    jsonPath: '.status.lastHeartbeatTime',
    description: 'When the konnector was last heard of.',
  },
  ready,
  age,
];
