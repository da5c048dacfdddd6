import type { RemoteWatch } from '../../api/inventory/component-reconciler.ts';
import type { Entry } from '../entry.ts';

export interface RemoteEvent {
  readonly entryUid: string;
  readonly component: string;
  /** `managed/services.example.org`, for the reason of the run. */
  readonly about: string;
}

export interface WantedWatches {
  readonly component: string;
  readonly watches: readonly RemoteWatch[];
}

/** Watches outside of the inventory, by entry. */
export interface RemoteEvents {
  /** From now on exactly these for the entry; opened again when its kubeconfig has a new version. */
  want(entry: Entry, wanted: readonly WantedWatches[]): void;
  forget(entryUid: string): void;
  /** Something that a component watches has changed, or may have while nobody looked. */
  subscribe(listener: (event: RemoteEvent) => void): () => void;
  /** Why the watches of an entry's own cluster are not to be relied on; undefined when they are. `onHealth` tells of changes. */
  problem(entryUid: string): string | undefined;
  onHealth(listener: (entryUid: string) => void): () => void;
  close(): Promise<void>;
}
