import type { CodeTable } from '../code-table.ts';

/** Denials of writes into entries and of registrations. */
export const inventoryCodes = {
  NoSuchRun: {
    audience: 'component',
    meaning: 'The token is not that of the current run: the run ended, was replaced, or never existed.',
    remedy: 'Answer Retry and wait for the next call.',
  },
  ForeignPath: {
    audience: 'component',
    meaning: 'The component writes a path that it does not own. The whole patch is denied.',
    remedy: 'Correct `writes` of its ComponentReconciler, or the component.',
  },
  ForeignSecret: {
    audience: 'component',
    meaning: 'A published `secretRef` names a Secret other than the one of the entry.',
    remedy: 'Publish the Secret `kc-UID` without a namespace.',
  },
  EntryTooLarge: {
    audience: 'anyone',
    meaning: 'The entry is larger than 64 KiB.',
    remedy: 'Store large content in a Secret or ConfigMap, and put its name into the entry.',
  },
  PathTaken: {
    audience: 'fleet administrator',
    meaning: 'Another component owns the path in entries of the same mode.',
    remedy: 'Correct `writes`.',
  },
  OwnOutputRead: {
    audience: 'fleet administrator',
    meaning: 'The component reads a path that it writes.',
    remedy: 'Correct `reads`.',
  },
  HasRuns: {
    audience: 'fleet administrator',
    meaning: 'Entries still have runs of the component, and no other component can tear down its resources.',
    remedy: 'Delete the entries, or abandon the component in them; the message names one.',
  },
  SecretNotReadable: {
    audience: 'requester',
    meaning: 'The user who set `spec.kubeconfigSecretRef` of the entry may not read the Secret.',
    remedy: 'A user who may read the Secret sets `spec.kubeconfigSecretRef` again.',
  },
} as const satisfies CodeTable;
