import type { CodeTable } from '../code-table.ts';

/** Denials for entries and registrations. The last five are codes of Events. */
export const inventoryCodes = {
  NoSuchRun: {
    audience: 'component',
    meaning:
      'The token does not authorize the write: its run has ended, a newer token replaced it, the entry is being deleted, or the component is not registered.',
    remedy: 'Do what the message says. Usually: stop, and wait for the next call.',
  },
  ForeignPath: {
    audience: 'component',
    meaning:
      'The component writes a path that it does not own, or names another Secret than that of the entry. The whole patch is denied.',
    remedy:
      'Write only the own paths and Secret, or ask a fleet administrator to add the path to `spec.writes` of the ComponentReconciler.',
  },
  EntryTooLarge: {
    audience: 'anyone',
    meaning:
      'The write would let the entry grow above 64 KiB, not counting managedFields and what only the server writes.',
    remedy: 'Store large content in a Secret or ConfigMap, and put its name into the entry.',
  },
  TooManyAbandonments: {
    audience: 'anyone',
    meaning: 'The annotations of the entry would abandon more than 64 components.',
    remedy: 'Remove the abandon annotations of components that the entry does not have.',
  },
  PathTaken: {
    audience: 'fleet administrator',
    meaning:
      'The component writes a path that another component owns in entries of the same mode, or reads one that it writes.',
    remedy:
      'Choose other paths in `spec.writes` or `spec.reads`. If `spec.writes` is not set, set it, or rename the component.',
  },
  HasRuns: {
    audience: 'fleet administrator',
    meaning: 'Entries still have runs of the component, and no other component can tear down its resources.',
    remedy:
      'Delete the entries that the message names, or annotate each with `abandon.inventory.drawbridge.dev/COMPONENT=REASON`: what the component created then stays.',
  },
  SecretNotReadable: {
    audience: 'anyone',
    meaning:
      'An Event, not a denial. The user who set `spec.kubeconfigSecretRef` has no permission to read the Secret, or is not recorded.',
    remedy: 'Ask a user who may read the Secret to remove `spec.kubeconfigSecretRef`, and then to set it again.',
  },
  Abandoned: {
    audience: 'fleet administrator',
    meaning:
      'An Event and a line of the journal, not a denial. A user abandoned a component of the entry: the server no longer runs it, and what it created stays.',
    remedy:
      'Delete what the component created, by hand. To undo the abandonment, remove the annotation, unless the entry is being deleted.',
  },
  MissingAlreadySatisfied: {
    audience: 'component',
    meaning:
      'An Event and a reason in the status of the component, not a denial. The component reported NotReady, but the inputs that it waits for were as it wants.',
    remedy:
      'Correct how the component reads the entry, or which inputs it reports. If other objects still use what it created, it must answer Retry.',
  },
  ReportRejected: {
    audience: 'component',
    meaning:
      'An Event, not a denial, at most one for each run. A report with the token of the run violates the contract. The message has the [code](#reports-of-components) of the answer.',
    remedy: 'Correct the report as the answer says.',
  },
  Livelock: {
    audience: 'fleet administrator',
    meaning: 'An Event, not a denial. The same inputs started more than 5 runs in 10 minutes.',
    remedy:
      'Find the component or user that changes the inputs back and forth; the message names them if the server knows them.',
  },
} as const satisfies CodeTable;
