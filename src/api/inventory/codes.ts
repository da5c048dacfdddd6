import type { CodeTable } from '../code-table.ts';

/** Denials for entries and registrations. The last five are codes of Events. */
export const inventoryCodes = {
  NoSuchRun: {
    audience: 'component',
    meaning:
      'The token does not authorize the write: its run has ended, a newer token replaced it, the entry is being deleted, or the component is not registered.',
    remedy: 'Do what the message says, usually stop and wait for the next call.',
  },
  ForeignPath: {
    audience: 'component',
    meaning:
      'The component writes a path that it does not own, or names a Secret other than that of the entry. The whole patch is denied.',
    remedy:
      'Write only own paths and the own Secret, or ask a fleet administrator to add the path to `spec.writes` of the ComponentReconciler.',
  },
  EntryTooLarge: {
    audience: 'anyone',
    meaning: 'The entry would grow above 64 KiB, not counting managedFields and what only drawbridge writes.',
    remedy: 'Store content in a Secret or ConfigMap that it names.',
  },
  TooManyAbandonments: {
    audience: 'anyone',
    meaning: 'The annotations would abandon more than 64 components.',
    remedy: 'Remove those of components that it does not have.',
  },
  PathTaken: {
    audience: 'fleet administrator',
    meaning:
      'The component writes a path that another component owns in entries of the same mode, or reads one that it writes.',
    remedy: 'Change `spec.writes` or `spec.reads`. If `spec.writes` is not set, set it, or rename the component.',
  },
  HasRuns: {
    audience: 'fleet administrator',
    meaning: 'Entries still have runs of the component, and no other can tear down its resources.',
    remedy:
      'Delete the entries that the message names, or annotate each with `abandon.inventory.drawbridge.dev/COMPONENT=REASON`, which keeps what the component created.',
  },
  SecretNotReadable: {
    audience: 'anyone',
    meaning: 'An Event: the user who set `spec.kubeconfigSecretRef` may not read the Secret, or is not recorded.',
    remedy: 'Ask a user who may read the Secret to remove `spec.kubeconfigSecretRef` and set it again.',
  },
  Abandoned: {
    audience: 'fleet administrator',
    meaning:
      'An Event and a line of the journal: a user abandoned a component. It no longer runs, and what it created stays.',
    remedy:
      'Delete by hand what it created. To undo the abandonment, remove the annotation, unless the entry is being deleted.',
  },
  MissingAlreadySatisfied: {
    audience: 'component',
    meaning:
      'An Event and a reason in the status of the component: it reported NotReady, but the inputs that it waits for were as it wants.',
    remedy:
      'Correct how it reads the entry, or which inputs it reports. If other objects still use what it created, it must answer Retry.',
  },
  ReportRejected: {
    audience: 'component',
    meaning:
      'An Event, at most one for each run: a report with its token violates the contract. The message has the [code](#reports-of-components).',
    remedy: 'Correct the report as the answer says.',
  },
  Livelock: {
    audience: 'fleet administrator',
    meaning: 'An Event: the same inputs started more than 5 runs in 10 minutes.',
    remedy: 'Find what changes the inputs back and forth; the message names it if known.',
  },
} as const satisfies CodeTable;
