import type { CodeTable } from '../code-table.ts';

/** Codes of denied writes to entries, of denied changes and deletions of registrations, and of the Event `SecretNotReadable`. */
export const inventoryCodes = {
  NoSuchRun: {
    audience: 'component',
    meaning: 'The token is not that of the current run: the run ended, was replaced, or never existed.',
    remedy: 'Return the outcome `Retry`, and wait for the next call.',
  },
  ForeignPath: {
    audience: 'component',
    meaning: 'The component writes a path that it does not own. The whole patch is denied.',
    remedy:
      'Change the component to write only its own paths, or ask a fleet administrator to add the path to `spec.writes` of its ComponentReconciler.',
  },
  ForeignSecret: {
    audience: 'component',
    meaning: 'The published `secretRef` does not name the Secret `kc-UID` of the entry, or has a namespace.',
    remedy: 'Publish `kc-` and the UID of the entry as the name, without a namespace.',
  },
  EntryTooLarge: {
    audience: 'anyone',
    meaning:
      'The write would let the entry grow above 64 KiB, not counting managedFields, `status.components`, and `status.conditions`.',
    remedy: 'Store large content in a Secret or ConfigMap, and put its name into the entry.',
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
      'Delete the entries. If a teardown cannot finish, annotate its entry with `abandon.inventory.drawbridge.dev/COMPONENT=REASON`. The message names one run; its name begins with the UID of its entry.',
  },
  SecretNotReadable: {
    audience: 'anyone',
    meaning:
      'The user who set `spec.kubeconfigSecretRef` has no permission to read the Secret, or the webhook did not record that user.',
    remedy: 'Ask a user who may read the Secret to remove `spec.kubeconfigSecretRef`, and then to set it again.',
  },
} as const satisfies CodeTable;
