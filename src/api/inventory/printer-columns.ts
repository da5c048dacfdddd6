import type { PrinterColumn } from '../schema/kind.ts';

const ready = '.status.conditions[?(@.type=="Ready")]';

const age: PrinterColumn = {
  name: 'Age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description: 'When it was created.',
};

const column = (
  name: string,
  jsonPath: string,
  description: string,
  rest: Partial<PrinterColumn> = {},
): PrinterColumn => ({
  name,
  type: 'string',
  jsonPath,
  description,
  ...rest,
});

export const entryColumns: readonly PrinterColumn[] = [
  column('Mode', '.spec.mode', 'Who makes the cluster.'),
  column('Ready', `${ready}.status`, 'Whether every component is done.'),
  column('Waiting For', `${ready}.message`, 'What is missing.'),
  column('Since', `${ready}.lastTransitionTime`, 'Since when.', { type: 'date' }),
  age,
];

export const registrationColumns: readonly PrinterColumn[] = [
  column('Accepted', '.status.conditions[?(@.type=="Accepted")].status', 'Whether it is run at all.'),
  column('Reachable', '.status.conditions[?(@.type=="Reachable")].status', 'Whether its endpoint answers.'),
  age,
];

export const runColumns: readonly PrinterColumn[] = [
  column('Entry', '.spec.entry.name', 'The entry.'),
  column('Component', '.spec.component', 'The component.'),
  column('Phase', '.spec.phase', 'What is going on now.'),
  column('Seq', '.spec.seq', 'The number of the last run.', { type: 'integer' }),
  column('Outcome', '.spec.lastOutcome.outcome', 'What the last one came to.'),
  column('Why', '.spec.reasons', 'Why it ran.'),
  column('Next', '.spec.nextAt', 'When it runs again by itself.', { priority: 1 }),
  column('Message', '.spec.lastOutcome.message', 'What the component said.', { priority: 1 }),
  age,
];
