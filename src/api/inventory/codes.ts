import type { CodeTable } from '../code-table.ts';

/** Denials for entries and registrations. The last five are codes of Events. */
export const inventoryCodes = {
  NoSuchRun: {
    audience: 'component',
    meaning:
      'The token does not authorize the write, for example because its run has ended, a heartbeat replaced the token, the entry is being deleted, or the component is not registered.',
    remedy:
      'Do what the message says. Usually: stop, and wait for the next call. After a heartbeat, use the token in its answer. If the entry is being deleted, report the outcome.',
  },
  ForeignPath: {
    audience: 'component',
    meaning: 'The patch of the component changes a path that the component does not own. The whole patch is denied.',
    remedy:
      'Change the component to write only its own paths, or ask a fleet administrator to add the path to `spec.writes` of its ComponentReconciler.',
  },
  ForeignSecret: {
    audience: 'component',
    meaning:
      'The published `secretRef` does not name the Secret `kc-UID`, where UID is the UID of the entry, or it contains a namespace.',
    remedy: 'Publish `kc-` and the UID of the entry as the name, without a namespace.',
  },
  EntryTooLarge: {
    audience: 'anyone',
    meaning:
      'The write would let the entry grow above 64 KiB, not counting managedFields, `status.components`, `status.conditions`, and `status.waitingFor`.',
    remedy: 'Store large content in a Secret or ConfigMap, and put its name into the entry.',
  },
  TooManyAbandonments: {
    audience: 'anyone',
    meaning: 'The annotations of the entry would abandon more than 64 components.',
    remedy: 'Remove the abandon annotations of components that the entry does not have.',
  },
  PathTaken: {
    audience: 'fleet administrator',
    meaning: 'The path overlaps a path that another component owns in entries of the same mode.',
    remedy: 'Choose another path in `spec.writes`. If the field is not set, set it, or rename the component.',
  },
  OwnOutputRead: {
    audience: 'fleet administrator',
    meaning: 'The component reads a path that overlaps one that it writes.',
    remedy: 'Remove the path from `spec.reads`.',
  },
  HasRuns: {
    audience: 'fleet administrator',
    meaning: 'Entries still have runs of the component, and no other component can tear down its resources.',
    remedy:
      'Delete the entries that the message names, or annotate each with `abandon.inventory.drawbridge.dev/COMPONENT=REASON`. The server then no longer runs the component for that entry, and what it created stays.',
  },
  SecretNotReadable: {
    audience: 'anyone',
    meaning:
      'Not a denial, but the code of an Event. The user who set `spec.kubeconfigSecretRef` has no permission to read the Secret, or the webhook did not record that user.',
    remedy: 'Ask a user who may read the Secret to remove `spec.kubeconfigSecretRef`, and then to set it again.',
  },
  Abandoned: {
    audience: 'fleet administrator',
    meaning:
      'Not a denial, but the code of an Event and of a line of the journal, which name the user. A user abandoned a component of the entry: the server no longer runs the component for the entry, and what the component created stays.',
    remedy:
      'Delete what the component created, by hand. To undo the abandonment, remove the annotation, unless the entry is being deleted.',
  },
  MissingAlreadySatisfied: {
    audience: 'component',
    meaning:
      'Not a denial, but the code of an Event, and the reason in the status of the component. The component reported NotReady, but the inputs that it waits for were already as it wants when the server called it.',
    remedy:
      'Correct how the component reads the entry, or which inputs it reports as missing. If it waits for `noReaders` while other objects use what it created, it must answer Retry instead.',
  },
  ReportRejected: {
    audience: 'component',
    meaning:
      'Not a denial, but the code of an Event, at most one for each run. A report with the token of the run violates the contract. The message has the [code](#reports-of-components) of the answer.',
    remedy: 'Correct the report as the answer says. The Event and the log of the server have nothing of its content.',
  },
  Livelock: {
    audience: 'fleet administrator',
    meaning:
      'Not a denial, but the code of an Event. The same inputs started more than 5 runs in 10 minutes, where consecutive runs with the same inputs count once.',
    remedy:
      'Find the component or user that changes these inputs back and forth; the message names the inputs if the server knows them.',
  },
} as const satisfies CodeTable;
